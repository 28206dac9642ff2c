import { BlockPool } from "../core/block-pool.js";
import { OptionError } from "../errors.js";
import type { Policy } from "../selection/policy.js";
import { Prng } from "./prng.js";
import type { TraceRequest } from "./row.js";
import { type ReplayPool, ReplayWorker } from "./worker.js";

export type { ReplayPool };

export interface ReplayOptions {
  /** Each is given a fleet of its own, and must not have chosen before. */
  readonly policies: readonly Policy[];
  /** Workers in each fleet, 1 to `WORKERS_MAX`. */
  readonly workers: number;
  /** Capacity of each worker's KV cache, 1 to `BLOCKS_MAX`; `"infinite"` means `BLOCKS_MAX`. */
  readonly blocksPerWorker: number | "infinite";
  /** Seeds the chance of every policy, 0 to 2^53 - 1. Default 0. */
  readonly seed?: number | undefined;
  /** Reads a monotonic clock in milliseconds. It measures the speed of the replay and decides nothing. */
  readonly now: () => number;
  /** Makes the KV cache of one worker. Default: a `BlockPool`. */
  readonly createPool?: ((capacity: number) => ReplayPool) | undefined;
}

export interface ReplayReport {
  /** Requests of the trace, empty ones included. */
  readonly requests: number;
  /** Requests without a full block: they are routed, and add neither hits nor work. */
  readonly emptyRequests: number;
  /** Full blocks of all prompts. */
  readonly blocks: number;
  /** From the first timestamp to the last, in milliseconds. */
  readonly durationMs: number;
  readonly policies: readonly PolicyReport[];
}

export interface PolicyReport {
  readonly policy: string;
  /** Part of the blocks of served requests that were found in a cache, 0 to 1. 0 if there were none. */
  readonly hitRate: number;
  /** Blocks computed by the busiest worker over the mean of all. 1 if nothing was computed. */
  readonly imbalance: number;
  /** Physical copies of blocks that were pushed out of a cache. */
  readonly evictions: number;
  /** Blocks that each worker had to compute. */
  readonly missedBlocks: readonly number[];
  /** Requests with more blocks than a worker's cache: they are routed, but not served, and count nowhere else. */
  readonly rejected: number;
  /** Speed of this policy's part of the replay. 0 if the clock did not move. */
  readonly requestsPerSecond: number;
}

export const WORKERS_MAX = 1024;
export const BLOCKS_MAX = 2 ** 24 - 1;

/** Requests that one policy handles before the next has its turn: the clock is read once for all of them. */
const BATCH_REQUESTS = 256;

/**
 * Sends every request of a trace through every policy, each to its own fleet of workers with real KV caches.
 *
 * The trace is read once and never held. Requests follow one another: each ends before the next is routed, and its
 * blocks stay in the cache until room is needed. Outputs add no blocks. The clock that policies see is the trace's
 * timestamps; it stands still for a request that is stamped earlier than one before it.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if a number is out of its range; whatever `requests` throws
 */
export async function replay(requests: AsyncIterable<TraceRequest>, options: ReplayOptions): Promise<ReplayReport> {
  const fleets = createFleets(options);
  const totals = new Totals();
  try {
    let batch: TraceRequest[] = [];
    for await (const request of requests) {
      totals.add(request);
      batch.push(request);
      if (batch.length < BATCH_REQUESTS) continue;
      for (const fleet of fleets) fleet.serveAll(batch);
      batch = [];
    }
    for (const fleet of fleets) fleet.serveAll(batch);
    return { ...totals.report(), policies: fleets.map((fleet) => fleet.report()) };
  } finally {
    for (const fleet of fleets) fleet.dispose();
  }
}

function createFleets(options: ReplayOptions): Fleet[] {
  const { workers, policies, now } = options;
  const capacity = options.blocksPerWorker === "infinite" ? BLOCKS_MAX : options.blocksPerWorker;
  requireCount("workers", workers, WORKERS_MAX);
  requireCount("blocksPerWorker", capacity, BLOCKS_MAX);
  const createPool = options.createPool ?? ((blocks: number): ReplayPool => new BlockPool({ capacity: blocks }));
  const createWorker = (_: unknown, id: number): ReplayWorker => new ReplayWorker(id, createPool(capacity));
  return policies.map((policy) => {
    const chance = new Prng(options.seed ?? 0); // one each: what a policy draws does not depend on its neighbours
    return new Fleet(policy, Array.from({ length: workers }, createWorker), chance, now);
  });
}

function requireCount(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new OptionError(`Expected ${name} to be a whole number from 1 to ${max}, got ${value}.`);
}

/** What is counted of the trace, whatever the policy. */
class Totals {
  #requests = 0;
  #emptyRequests = 0;
  #blocks = 0;
  #firstMs: number | undefined;
  #lastMs = 0;

  add({ sequenceHashes, timestampMs }: TraceRequest): void {
    this.#requests++;
    this.#blocks += sequenceHashes.length;
    if (sequenceHashes.length === 0) this.#emptyRequests++;
    this.#firstMs ??= timestampMs;
    this.#lastMs = Math.max(this.#lastMs, timestampMs);
  }

  report(): Omit<ReplayReport, "policies"> {
    return {
      requests: this.#requests,
      emptyRequests: this.#emptyRequests,
      blocks: this.#blocks,
      durationMs: this.#lastMs - (this.#firstMs ?? 0),
    };
  }
}

/** The workers behind one policy, and what has become of its choices. */
class Fleet {
  readonly #policy: Policy;
  readonly #workers: readonly ReplayWorker[];
  readonly #context: { nowMs: number; random(): number; hotBlocks: number; averageMissedTokens: number };
  readonly #now: () => number;
  #served = 0;
  #rejected = 0;
  #hitBlocks = 0;
  #elapsedMs = 0;

  constructor(policy: Policy, workers: readonly ReplayWorker[], chance: Prng, now: () => number) {
    this.#policy = policy;
    this.#workers = workers;
    this.#context = { nowMs: 0, random: () => chance.random(), hotBlocks: 0, averageMissedTokens: 0 };
    this.#now = now;
  }

  serveAll(requests: readonly TraceRequest[]): void {
    const startMs = this.#now();
    for (const request of requests) this.#serve(request);
    this.#elapsedMs += this.#now() - startMs;
  }

  #serve(request: TraceRequest): void {
    const { sequenceHashes, timestampMs } = request;
    this.#context.nowMs = Math.max(this.#context.nowMs, timestampMs);
    for (const worker of this.#workers) worker.consider(sequenceHashes);
    const { index } = this.#policy.choose(this.#workers, request, this.#context);
    const worker = this.#workers[index];
    if (worker === undefined) {
      const last = this.#workers.length - 1;
      throw new OptionError(`Expected ${this.#policy.name} to choose an index from 0 to ${last}, got ${index}.`);
    }
    const hits = worker.serve(sequenceHashes);
    if (hits === null) {
      this.#rejected++;
    } else {
      this.#served++;
      this.#hitBlocks += hits;
    }
  }

  report(): PolicyReport {
    const missedBlocks = this.#workers.map((worker) => worker.load.missedBlocks);
    const missed = sum(missedBlocks);
    const handled = this.#served + this.#rejected;
    return {
      policy: this.#policy.name,
      hitRate: this.#hitBlocks === 0 ? 0 : this.#hitBlocks / (this.#hitBlocks + missed),
      imbalance: missed === 0 ? 1 : Math.max(...missedBlocks) / (missed / missedBlocks.length),
      evictions: sum(this.#workers.map((worker) => worker.evictedBlocks)),
      missedBlocks,
      rejected: this.#rejected,
      requestsPerSecond: this.#elapsedMs > 0 ? handled / (this.#elapsedMs / 1000) : 0,
    };
  }

  dispose(): void {
    for (const worker of this.#workers) worker.dispose();
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
