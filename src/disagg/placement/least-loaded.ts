import { ArgumentRangeError, PlacementError } from "../../errors.js";
import { checkRank } from "../checks.js";
import { checkRanks, checkRoom, duplicateRank, noWorkers, Ring, unknownRank } from "./ring.js";

export interface LeastLoadedOptions {
  /** Among equals: the next in turn (`rotate`, the default), or the first that was given, as the original does. */
  readonly tieBreak?: "rotate" | "first" | undefined;
}

/** How busy a worker is. */
export interface RankLoad {
  readonly rank: number;
  /** Requests that chose the worker and have not released it. */
  readonly inFlight: number;
  /** `at-work` can be chosen, `draining` cannot, `removed` is forgotten with its last request. */
  readonly state: "at-work" | "draining" | "removed";
}

interface Load {
  readonly rank: number;
  inFlight: number;
  state: RankLoad["state"];
}

/**
 * Chooses the worker with the fewest requests in flight.
 *
 * A worker that was removed keeps its count until the last of its requests is released, so that the releases of requests
 * from before do not meet the count of a worker that came back under the same rank.
 */
export class LeastLoaded {
  readonly #loads = new Map<number, Load>();
  readonly #ring: Ring<Load>;
  readonly #rotates: boolean;

  /** @throws {PlacementError} `KVROUTE_DUPLICATE_RANK`, `KVROUTE_TOO_MANY_RANKS` */
  constructor(ranks: readonly number[], options: LeastLoadedOptions = {}) {
    const { tieBreak = "rotate" } = options;
    if (tieBreak !== "rotate" && tieBreak !== "first") {
      throw new ArgumentRangeError(`Expected tieBreak "rotate" or "first", got ${JSON.stringify(tieBreak)}.`);
    }
    checkRanks(ranks);
    for (const rank of ranks) this.#loads.set(rank, { rank, inFlight: 0, state: "at-work" });
    this.#ring = new Ring(this.#loads.values());
    this.#rotates = tieBreak === "rotate";
  }

  /**
   * Chooses a worker and counts a request for it, which `release` takes back.
   *
   * @param except a rank not to choose: the worker that has just failed at the request
   * @throws {PlacementError} `KVROUTE_NO_WORKERS` if none (or none but that one) is at work
   */
  choose(except?: number): number {
    const ring = this.#ring;
    let best: number | undefined;
    for (let steps = 0; steps < ring.size; steps++) {
      const { rank, inFlight } = ring.at(steps);
      if (rank !== except && (best === undefined || inFlight < ring.at(best).inFlight)) best = steps;
    }
    if (best === undefined) throw noWorkers();
    const load = ring.at(best);
    load.inFlight++;
    if (this.#rotates) ring.advance(best + 1);
    return load.rank;
  }

  /**
   * Takes back one request of a worker. A rank that is not known is ignored, as the original does.
   *
   * @throws {PlacementError} `KVROUTE_RELEASE_IDLE` if the worker has no request in flight
   */
  release(rank: number): void {
    const load = this.#loads.get(checkRank(rank));
    if (load === undefined) return;
    if (load.inFlight === 0) {
      throw new PlacementError(
        "KVROUTE_RELEASE_IDLE",
        `Expected a request in flight at rank ${rank}, but there is none.`,
      );
    }
    load.inFlight--;
    this.#forgetIfGone(load);
  }

  /** Tells how many requests of a worker are in flight; 0 for a rank that is not known. */
  inFlight(rank: number): number {
    return this.#loads.get(checkRank(rank))?.inFlight ?? 0;
  }

  /**
   * Adds a worker behind all others, or puts one back to work that was drained or removed.
   *
   * @throws {PlacementError} `KVROUTE_DUPLICATE_RANK` if it is at work, `KVROUTE_TOO_MANY_RANKS`
   */
  addWorker(rank: number): void {
    const known = this.#loads.get(checkRank(rank));
    if (known?.state === "at-work") throw duplicateRank(rank);
    if (known === undefined) checkRoom(this.#loads.size + 1);
    const load = known ?? { rank, inFlight: 0, state: "at-work" };
    load.state = "at-work";
    this.#loads.set(rank, load);
    this.#ring.add(load);
  }

  /**
   * Lets a worker finish what it has, and chooses it no more.
   *
   * @throws {PlacementError} `KVROUTE_UNKNOWN_RANK` if it was never added, or removed
   */
  drainWorker(rank: number): void {
    const load = this.#loads.get(checkRank(rank));
    if (load === undefined || load.state === "removed") throw unknownRank(rank);
    this.#ring.delete(load);
    load.state = "draining";
  }

  /** Chooses a worker no more, and forgets it once nothing of it is in flight. A rank that is not known is ignored. */
  removeWorker(rank: number): void {
    const load = this.#loads.get(checkRank(rank));
    if (load === undefined) return;
    this.#ring.delete(load);
    load.state = "removed";
    this.#forgetIfGone(load);
  }

  /** Lists all workers with their loads, those that were removed as long as they have requests in flight. */
  loads(): RankLoad[] {
    return Array.from(this.#loads.values(), (load) => ({ ...load }));
  }

  #forgetIfGone(load: Load): void {
    if (load.state === "removed" && load.inFlight === 0) this.#loads.delete(load.rank);
  }
}
