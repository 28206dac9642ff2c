import type { Candidate, CandidateLoad } from "../selection/policy.js";

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

/** Nothing lasts, so nothing is ever active. */
const NOTHING_BOOKED: CandidateLoad = {
  missedBlocks: 0,
  activeRequests: 0,
  activeBlocks: 0,
  activePrefills: 0,
  activePrefillTokens: 0,
  headTokens: 0,
  headSinceMs: 0,
  tokensPerMs: 0,
  endedPrefills: 0,
  recentTokens: 0,
};

const NO_HASHES: BigUint64Array = new BigUint64Array(0);

/** One worker of a replay: a KV cache, and the figures a policy sees of it. It computes and frees a request at once. */
export class ReplayWorker implements Candidate {
  readonly worker: { readonly workerId: number; readonly dpRank: number };
  readonly load: { -readonly [figure in keyof CandidateLoad]: CandidateLoad[figure] };
  readonly activeOverlapBlocks = 0;
  readonly weight = 1;
  readonly preference = 0;
  readonly #pool: ReplayPool;
  #hashes = NO_HASHES;
  #overlapBlocks: number | undefined;

  constructor(workerId: number, pool: ReplayPool) {
    this.worker = { workerId, dpRank: 0 };
    this.load = { ...NOTHING_BOOKED };
    this.#pool = pool;
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

  /** Counts the blocks that were pushed out of the cache, each physical copy once. */
  get evictedBlocks(): number {
    return this.load.missedBlocks - this.#pool.numInactive; // all are inactive between requests
  }

  /**
   * Serves a request: takes the blocks that are resident, computes the others and keeps them all for later ones.
   *
   * @returns how many blocks were resident, or `null` if the request has more blocks than the cache: nothing changes then
   */
  serve(hashes: BigUint64Array): number | null {
    if (hashes.length === 0) return 0;
    const pool = this.#pool;
    const outcome = pool.reserveResidentPrefix(hashes, hashes.length);
    if (outcome === null) return null;
    const { reservation } = outcome;
    const missed = reservation.freshLength;
    const hits = hashes.length - missed;
    const prefixIds = pool.activatePrefix(reservation);
    if (missed > 0) pool.releaseChain(pool.allocateAllCached(reservation, hashes.subarray(hits)).ids);
    if (hits > 0) pool.releaseChain(prefixIds); // after the rest: leaves are evicted before their parents
    this.load.missedBlocks += missed;
    return hits;
  }

  dispose(): void {
    this.#pool.dispose();
  }
}
