import { missedTokens } from "../selection/policies/kv.js";
import { HELD_MAX, HoldQueue } from "../selection/queue.js";
import type { TraceRequest } from "./row.js";
import type { ReplayWorker } from "./worker.js";

/** A request in the router, and since when. */
export interface Arrival {
  readonly request: TraceRequest;
  readonly arrivalMs: number;
}

/** Holds requests in the router until a worker has no unfinished prefill; who has least to compute goes first. */
export class Holding {
  readonly #queue: HoldQueue<Arrival>;
  readonly #workers: readonly ReplayWorker[];

  constructor(workers: readonly ReplayWorker[], unfinishedMax: number) {
    const maxHeld = Math.min(unfinishedMax, HELD_MAX);
    this.#queue = new HoldQueue({ maxHeld, maxWaitMs: Number.POSITIVE_INFINITY });
    this.#workers = workers;
  }

  /** Counts the requests that are held. */
  get size(): number {
    return this.#queue.size;
  }

  hold(arrival: Arrival): void {
    this.#queue.hold(arrival, arrival.arrivalMs);
  }

  /**
   * Takes the request that goes next, and the worker that it goes to. `undefined` if none can go now.
   *
   * @param choose a free worker for a request, or `undefined` where it had better wait for a busy one
   */
  next(
    nowMs: number,
    choose: (request: TraceRequest) => ReplayWorker | undefined,
  ): (Arrival & { worker: ReplayWorker }) | undefined {
    if (this.#queue.size === 0) return undefined;
    if (!this.#workers.some(({ load }) => load.activePrefills === 0)) return undefined;
    const arrival = this.#queue.take(nowMs, this.#speed(), ({ request }) => {
      const worker = choose(request);
      return worker === undefined ? undefined : missedTokens(worker.overlapBlocks, request);
    });
    const worker = arrival && choose(arrival.request); // the same again: nothing has been booked since
    return arrival && worker && { ...arrival, worker };
  }

  /** The tokens that the fastest worker is known to compute in a millisecond. */
  #speed(): number {
    let fastest = 0;
    for (const { load } of this.#workers) fastest = Math.max(fastest, load.tokensPerMs);
    return fastest;
  }
}
