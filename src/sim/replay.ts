import { BlockPool } from "../core/block-pool.js";
import { BookedBlocks } from "../core/booked-blocks.js";
import { countOption } from "../selection/policies/numbers.js";
import type { Policy } from "../selection/policy.js";
import { NO_BLOCKS, type ReplayBlocks, type ReplayPotential } from "./blocks.js";
import type { DelaySummary } from "./delays.js";
import { Fleet, type FleetReport, type FleetTiming, TIMELESS } from "./fleet.js";
import { Prng } from "./prng.js";
import type { TraceRequest, TraceUnit } from "./row.js";
import {
  checkTiming,
  DECODE_MS_PER_TOKEN_DEFAULT,
  HELD_BYTES_MAX_DEFAULT,
  holdTrace,
  type ReplayTiming,
  rateAt,
  UNFINISHED_MAX_DEFAULT,
} from "./timing.js";
import type { ReplayPool } from "./worker.js";

export type { DelaySummary, ReplayBlocks, ReplayPool, ReplayPotential, ReplayTiming };

export interface ReplayOptions {
  /** Each is given a fleet of its own, and must not have chosen before. */
  readonly policies: readonly Policy[];
  /** Workers in each fleet, 1 to `WORKERS_MAX`. */
  readonly workers: number;
  /** Capacity of each worker's KV cache, 1 to `BLOCKS_MAX`; `"infinite"` means `BLOCKS_MAX`. */
  readonly blocksPerWorker: number | "infinite";
  /** Seeds the chance of every policy, 0 to 2^53 - 1. Default 0. */
  readonly seed?: number | undefined;
  /** How long things take. Without it they take no time: each request ends before the next is routed. */
  readonly timing?: ReplayTiming | undefined;
  /** Reads a monotonic clock in milliseconds. It measures the speed of the replay and decides nothing. */
  readonly now: () => number;
  /** Makes the KV cache of one worker. Default: a `BlockPool`. */
  readonly createPool?: ((capacity: number) => ReplayPool) | undefined;
  /** Makes the table of the blocks that a fleet has in use, where things take time. Default: a `BookedBlocks`. */
  readonly createBlocks?: (() => ReplayBlocks) | undefined;
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
  /** Where things took time. */
  readonly timing?: TimingReport | undefined;
  readonly policies: readonly PolicyReport[];
}

export interface PolicyReport extends FleetReport {
  /** Speed of this policy's part of the replay. 0 if the clock did not move. */
  readonly requestsPerSecond: number;
  /** From the arrival of a request to the end of its prefill: waiting and computing. Where things take time. */
  readonly delayMs?: DelaySummary | undefined;
  /** `imbalance` within windows of a minute, averaged. Where things take time. */
  readonly windowImbalance?: number | undefined;
}

/** How long things took. */
export interface TimingReport {
  /** Tokens that a worker prefilled in a second. */
  readonly prefillRate: number;
  /** What the rate was found from. */
  readonly utilisation?: number | undefined;
  readonly decodeMsPerToken: number;
  readonly closedLoop: boolean;
  readonly hold: boolean;
  /** What the trace counts for tokens. */
  readonly unit: TraceUnit;
}

export const WORKERS_MAX = 1024;
export const BLOCKS_MAX = 2 ** 24 - 1;

/** Requests that one policy handles before the next has its turn: the clock is read once for all of them. */
const BATCH_REQUESTS = 256;

/**
 * Sends every request of a trace through every policy, each to its own fleet of workers with real KV caches.
 *
 * The trace is read once, and held only if `timing.utilisation` asks for it. Blocks stay in a cache until room is needed.
 * Outputs add no blocks. The clock that policies see is the trace's timestamps; it stands still for a request that is
 * stamped earlier than one before it. With a timing, each worker serves prefills one after the other, a policy sees what
 * it has booked, and a booked prefill is released when it ends. Without one, each request ends before the next is routed.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if a number is out of its range, or a closed loop meets a row without a session
 * @throws {ReplayLimitError} `KVROUTE_REPLAY_LIMIT` if the trace, or what is unfinished, is more than may be held
 * @throws whatever `requests` throws
 */
export async function replay(requests: AsyncIterable<TraceRequest>, options: ReplayOptions): Promise<ReplayReport> {
  checkOptions(options);
  const { requests: timed, timing } = await timeTrace(requests, options);
  const lanes = createLanes(options, timing);
  const totals = new Totals();
  try {
    let batch: TraceRequest[] = [];
    for await (const request of timed) {
      totals.add(request);
      batch.push(request);
      if (batch.length < BATCH_REQUESTS) continue;
      for (const lane of lanes) lane.takeAll(batch);
      batch = [];
    }
    for (const lane of lanes) lane.takeAll(batch, true);
    return { ...totals.report(timing), policies: lanes.map((lane) => lane.report(timing !== undefined)) };
  } finally {
    for (const lane of lanes) lane.fleet.dispose();
  }
}

function checkOptions({ workers, blocksPerWorker, timing }: ReplayOptions): void {
  countOption("workers", workers, 1, WORKERS_MAX);
  countOption("blocksPerWorker", capacityOf(blocksPerWorker), 1, BLOCKS_MAX);
  if (timing !== undefined) checkTiming(timing);
}

function capacityOf(blocksPerWorker: number | "infinite"): number {
  return blocksPerWorker === "infinite" ? BLOCKS_MAX : blocksPerWorker;
}

function createPools({ workers, blocksPerWorker, createPool }: ReplayOptions): ReplayPool[] {
  const capacity = capacityOf(blocksPerWorker);
  const create = createPool ?? ((blocks: number): ReplayPool => new BlockPool({ capacity: blocks }));
  return Array.from({ length: workers }, () => create(capacity));
}

function createLanes(options: ReplayOptions, timing: FleetTiming | undefined): Lane[] {
  const createBlocks = options.createBlocks ?? ((): ReplayBlocks => new BookedBlocks({ maxBlocks: BLOCKS_MAX }));
  return options.policies.map((policy) => {
    const chance = new Prng(options.seed ?? 0); // one each: what a policy draws does not depend on its neighbours
    const blocks = timing === undefined ? NO_BLOCKS : createBlocks();
    return new Lane(new Fleet(policy, createPools(options), blocks, chance, timing ?? TIMELESS), options.now);
  });
}

/** A trace, and how long its requests will take. */
interface TimedTrace {
  readonly requests: AsyncIterable<TraceRequest> | readonly TraceRequest[];
  readonly timing?:
    | (FleetTiming & { readonly prefillRate: number; readonly utilisation: number | undefined })
    | undefined;
}

/** Fills in what the timing leaves open. To find a rate, the trace is read. */
async function timeTrace(requests: AsyncIterable<TraceRequest>, options: ReplayOptions): Promise<TimedTrace> {
  const { timing } = options;
  if (timing === undefined) return { requests };
  const { utilisation, heldBytesMax = HELD_BYTES_MAX_DEFAULT } = timing;
  const held = utilisation === undefined ? undefined : await holdTrace(requests, heldBytesMax);
  const prefillRate = timing.prefillRate ?? rateAt(utilisation ?? 1, held ?? [], createPools(options));
  const settings = {
    prefillRate,
    utilisation,
    prefillMsPerToken: 1000 / prefillRate,
    decodeMsPerToken: timing.decodeMsPerToken ?? DECODE_MS_PER_TOKEN_DEFAULT,
    closedLoop: timing.closedLoop ?? false,
    hold: timing.hold ?? false,
    unfinishedMax: timing.unfinishedMax ?? UNFINISHED_MAX_DEFAULT,
  };
  return { requests: held ?? requests, timing: settings };
}

/** What is counted of the trace, whatever the policy. */
class Totals {
  #requests = 0;
  #emptyRequests = 0;
  #blocks = 0;
  #firstMs: number | undefined;
  #lastMs = 0;
  #unit: TraceUnit = "token";

  add({ sequenceHashes, timestampMs, unit }: TraceRequest): void {
    this.#unit = unit;
    this.#requests++;
    this.#blocks += sequenceHashes.length;
    if (sequenceHashes.length === 0) this.#emptyRequests++;
    this.#firstMs ??= timestampMs;
    this.#lastMs = Math.max(this.#lastMs, timestampMs);
  }

  report(timing: TimedTrace["timing"]): Omit<ReplayReport, "policies"> {
    return {
      timing: timing && this.#timingReport(timing),
      requests: this.#requests,
      emptyRequests: this.#emptyRequests,
      blocks: this.#blocks,
      durationMs: this.#lastMs - (this.#firstMs ?? 0),
    };
  }

  #timingReport({
    prefillRate,
    utilisation,
    decodeMsPerToken,
    closedLoop,
    hold,
  }: NonNullable<TimedTrace["timing"]>): TimingReport {
    return { prefillRate, utilisation, decodeMsPerToken, closedLoop, hold, unit: this.#unit };
  }
}

/** One policy with its fleet, and the time that its turns have taken. */
class Lane {
  readonly fleet: Fleet;
  readonly #now: () => number;
  #elapsedMs = 0;

  constructor(fleet: Fleet, now: () => number) {
    this.fleet = fleet;
    this.#now = now;
  }

  takeAll(requests: readonly TraceRequest[], isLast = false): void {
    const startMs = this.#now();
    for (const request of requests) this.fleet.take(request);
    if (isLast) this.fleet.finish();
    this.#elapsedMs += this.#now() - startMs;
  }

  report(isTimed: boolean): PolicyReport {
    const requestsPerSecond = this.#elapsedMs > 0 ? this.fleet.handled / (this.#elapsedMs / 1000) : 0;
    const report = { ...this.fleet.report(), requestsPerSecond };
    return isTimed ? { ...report, ...this.fleet.timeReport() } : report;
  }
}
