import type { WorkerLoad } from "../selection/load.js";
import type { Candidate } from "../selection/policy.js";
import type { ActiveBlocks } from "./blocks.js";

/** What the replay asks of a worker's KV cache. `BlockPool` is one. */
export interface ReplayPool {
  readonly numInactive: number;
  matchPrefix(hashes: BigUint64Array): { readonly resident: number };
  reserveResidentPrefix(candidates: BigUint64Array, total: number): { readonly reservation: ReplayReservation } | null;
  activatePrefix(reservation: ReplayReservation): Float64Array;
  allocateAllCached(reservation: ReplayReservation, hashes: BigUint64Array): { readonly ids: Float64Array };
  releaseChain(ids: Float64Array): void;
  dispose(): void;
}

export interface ReplayReservation {
  readonly length: number;
  readonly freshLength: number;
}

const NO_HASHES: BigUint64Array = new BigUint64Array(0);

/** One worker of a replay: a KV cache, a queue of prefills, and the figures that a policy sees of it. */
export class ReplayWorker implements Candidate {
  /** Its place in its fleet, which is its id. */
  readonly place: number;
  readonly weight = 1;
  readonly preference = 0;
  readonly load: WorkerLoad;
  readonly #pool: ReplayPool;
  readonly #active: ActiveBlocks;

  #hashes = NO_HASHES;
  #overlapBlocks: number | undefined;
  /** When the last prefill of its queue ends. */
  #freeMs = 0;

  constructor(place: number, load: WorkerLoad, pool: ReplayPool, active: ActiveBlocks) {
    this.place = place;
    this.load = load;
    this.#pool = pool;
    this.#active = active;
  }

  get worker(): WorkerLoad["worker"] {
    return this.load.worker;
  }

  /** Makes a request the one that `overlapBlocks` is about. */
  consider(hashes: BigUint64Array): void {
    this.#hashes = hashes;
    this.#overlapBlocks = undefined;
  }

  /** Counts the leading blocks of the request that the cache holds, when a policy first asks for them. */
  get overlapBlocks(): number {
    this.#overlapBlocks ??= this.#hashes.length === 0 ? 0 : this.#pool.matchPrefix(this.#hashes).resident;
    return this.#overlapBlocks;
  }

  get activeOverlapBlocks(): number {
    return this.#active.on(this.place);
  }

  /** Counts the blocks that were pushed out of the cache, each physical copy once. */
  get evictedBlocks(): number {
    return this.load.missedBlocks - this.#pool.numInactive; // all are inactive between requests
  }

  /** Leads the cache through a request, as `serve` does. */
  serve(hashes: BigUint64Array): number | null {
    return serve(this.#pool, hashes);
  }

  /** Puts a prefill at the end of the queue, and says when it will have ended. */
  enqueue(prefillMs: number, nowMs: number): number {
    this.#freeMs = Math.max(this.#freeMs, nowMs) + prefillMs;
    return this.#freeMs;
  }

  dispose(): void {
    this.#pool.dispose();
  }
}

/**
 * Serves a request from a cache: takes the blocks that are resident, computes the others and keeps them all for later ones.
 * As a worker takes its requests in the order in which they are sent, its cache may be led through them ahead of time.
 *
 * @returns how many blocks were resident, or `null` if the request has more blocks than the cache: nothing changes then
 */
export function serve(pool: ReplayPool, hashes: BigUint64Array): number | null {
  if (hashes.length === 0) return 0;
  const outcome = pool.reserveResidentPrefix(hashes, hashes.length);
  if (outcome === null) return null;
  const { reservation } = outcome;
  const missed = reservation.freshLength;
  const hits = hashes.length - missed;
  const prefixIds = pool.activatePrefix(reservation);
  if (missed > 0) pool.releaseChain(pool.allocateAllCached(reservation, hashes.subarray(hits)).ids);
  if (hits > 0) pool.releaseChain(prefixIds); // after the rest: leaves are evicted before their parents
  return hits;
}
