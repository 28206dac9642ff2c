import { OptionError, ReplayLimitError } from "../errors.js";
import { BookedLoad, type LoadBooking } from "../selection/load.js";
import { missedTokens } from "../selection/policies/kv.js";
import type { Choice, Policy } from "../selection/policy.js";
import { ActiveBlocks, type ReplayBlocks } from "./blocks.js";
import { ClosedLoop } from "./closed-loop.js";
import { type DelaySummary, Delays } from "./delays.js";
import { Heap } from "./heap.js";
import { Holding } from "./holding.js";
import type { Prng } from "./prng.js";
import type { TraceRequest } from "./row.js";
import { CHARACTERS_PER_TOKEN } from "./timing.js";
import { Windows } from "./windows.js";
import { type ReplayPool, ReplayWorker } from "./worker.js";

/** How a fleet spends its time. */
export interface FleetTiming {
  /** What a token of prefill takes; 0 in a replay without time. */
  readonly prefillMsPerToken: number;
  readonly decodeMsPerToken: number;
  readonly closedLoop: boolean;
  /** Whether requests are held in the router until a worker has no unfinished prefill. */
  readonly hold: boolean;
  readonly unfinishedMax: number;
}

/** Each request ends before the next is routed. */
export const TIMELESS: FleetTiming = {
  prefillMsPerToken: 0,
  decodeMsPerToken: 0,
  closedLoop: false,
  hold: false,
  unfinishedMax: Number.POSITIVE_INFINITY,
};

/** What has become of the choices of one policy. */
export interface FleetReport {
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
}

/** A prefill, and after it an answer, that will end. */
interface Ending {
  readonly serial: number;
  readonly booking: LoadBooking;
  readonly request: TraceRequest;
  atMs: number;
}

/** The workers behind one policy. Events happen in the order of their times; what ends goes before what arrives then. */
export class Fleet {
  readonly #policy: Policy;
  readonly #timing: FleetTiming;
  readonly #blocks: ReplayBlocks;
  readonly #active: ActiveBlocks;
  readonly #load: BookedLoad;
  readonly #workers: readonly ReplayWorker[];
  readonly #context: {
    nowMs: number;
    random(): number;
    hotBlocks: number;
    averageMissedTokens: number;
    explain: boolean;
  };
  readonly #endings = new Heap<Ending>(isEarlier);
  readonly #closedLoop: ClosedLoop | undefined;
  readonly #holding: Holding | undefined;
  /** Whether a prefill has ended since requests were last handed over. */
  #isFree = false;
  /** Requests whose session has just been answered. */
  #ready: TraceRequest[] = [];
  readonly #delays = new Delays();
  readonly #windows: Windows;
  #served = 0;
  #rejected = 0;
  #hitBlocks = 0;

  constructor(policy: Policy, pools: readonly ReplayPool[], blocks: ReplayBlocks, chance: Prng, timing: FleetTiming) {
    this.#policy = policy;
    this.#timing = timing;
    this.#blocks = blocks;
    const active = new ActiveBlocks(blocks, pools.length, policy.hotRequests ?? Number.POSITIVE_INFINITY);
    const load = new BookedLoad(blocks);
    this.#active = active;
    this.#load = load;
    this.#workers = pools.map((pool, place) => {
      return new ReplayWorker(place, load.open({ workerId: place, dpRank: 0 }), pool, active);
    });
    this.#context = { nowMs: 0, random: () => chance.random(), hotBlocks: 0, averageMissedTokens: 0, explain: false };
    this.#closedLoop = timing.closedLoop ? new ClosedLoop() : undefined;
    this.#holding = timing.hold ? new Holding(this.#workers, timing.unfinishedMax) : undefined;
    this.#windows = new Windows(pools.length);
  }

  /** Counts the requests that were served or refused. */
  get handled(): number {
    return this.#served + this.#rejected;
  }

  /** Counts the requests that are under way or wait for their session. */
  get unfinished(): number {
    return this.#endings.size + (this.#closedLoop?.waiting ?? 0) + (this.#holding?.size ?? 0);
  }

  /** Takes the next request of the trace. The clock stands still for one that is stamped earlier than one before it. */
  take(request: TraceRequest): void {
    const arrivalMs = Math.max(this.#context.nowMs, request.timestampMs);
    this.#passTime(arrivalMs);
    this.#context.nowMs = arrivalMs;
    const { unfinishedMax } = this.#timing;
    if (this.unfinished >= unfinishedMax) {
      const wanted = `at most ${unfinishedMax} unfinished requests with ${this.#policy.name}, got one more`;
      throw new ReplayLimitError(wanted, "Give a higher --prefill-rate or a lower --utilisation, or more --workers.");
    }
    if (this.#closedLoop?.enter(sessionOf(request), request) !== false) this.#send(request);
  }

  /** Lets all that is under way end. */
  finish(): void {
    this.#passTime(Number.POSITIVE_INFINITY);
  }

  /** Ends what ends up to a time, in order, and sends what waited for that when all has ended that ends then. */
  #passTime(untilMs: number): void {
    for (;;) {
      const next = this.#endings.first;
      const isDue = next !== undefined && next.atMs <= untilMs;
      if ((this.#isFree || this.#ready.length > 0) && !(isDue && next.atMs <= this.#context.nowMs)) {
        this.#goOn();
        continue;
      }
      if (!isDue) return;
      this.#endings.pop();
      this.#context.nowMs = next.atMs;
      this.#end(next);
    }
  }

  /** Sends what waited for a session or for a worker. */
  #goOn(): void {
    const ready = this.#ready;
    this.#ready = [];
    for (const request of ready) this.#send(request);
    this.#handOver();
  }

  #handOver(): void {
    this.#isFree = false;
    const choose = (request: TraceRequest): ReplayWorker | undefined => this.#chooseFree(request);
    for (;;) {
      const next = this.#holding?.next(this.#context.nowMs, choose);
      if (next === undefined) return;
      if (!this.#serve(next.request, next.arrivalMs, next.worker)) this.#refuse(next.request);
    }
  }

  #end(ending: Ending): void {
    const { booking, request, atMs } = ending;
    this.#isFree ||= this.#holding !== undefined && booking.isPrefilling;
    const answerMs = this.#answerMs(request);
    if (booking.isPrefilling && answerMs > 0) {
      this.#load.endPrefill(booking, atMs);
      ending.atMs += answerMs;
      this.#endings.push(ending);
      return;
    }
    this.#load.endPrefill(booking, atMs);
    this.#load.release(booking, atMs);
    const next = this.#closedLoop?.leave(sessionOf(request));
    if (next !== undefined) this.#ready.push(next);
  }

  #answerMs({ outputTokens, unit }: TraceRequest): number {
    return (this.#timing.decodeMsPerToken * outputTokens) / (unit === "character" ? CHARACTERS_PER_TOKEN : 1);
  }

  /** Sends a request to a worker, or holds it until one has no unfinished prefill. */
  #send(request: TraceRequest): void {
    const { nowMs } = this.#context;
    if (this.#holding === undefined) {
      if (!this.#serve(request, nowMs, this.#choose(request))) this.#refuse(request);
      return;
    }
    this.#holding.hold({ request, arrivalMs: nowMs });
    this.#handOver();
  }

  /** Counts a request that is refused. The next of its session goes on at once. */
  #refuse(request: TraceRequest): void {
    this.#rejected++;
    const next = this.#closedLoop?.leave(sessionOf(request));
    if (next !== undefined) this.#ready.push(next);
  }

  /** Serves a request now, or does not if its blocks do not fit into a cache. */
  #serve(request: TraceRequest, arrivalMs: number, worker: ReplayWorker): boolean {
    const { sequenceHashes } = request;
    const { nowMs } = this.#context;
    const hits = worker.serve(sequenceHashes);
    if (hits === null) return false;
    const missedBlocks = sequenceHashes.length - hits;
    const tokens = missedTokens(hits, request);
    const atMs = worker.enqueue(tokens * this.#timing.prefillMsPerToken, nowMs);
    const facts = { sequenceHashes, missedTokens: tokens, missedBlocks, trackPrefill: true };
    const booking = this.#load.book(worker.load, facts, nowMs);
    this.#endings.push({ serial: this.#served, booking, request, atMs });
    this.#served++;
    this.#hitBlocks += hits;
    this.#delays.add(atMs - arrivalMs);
    this.#windows.add(worker.place, missedBlocks, nowMs);
    return true;
  }

  #choose(request: TraceRequest): ReplayWorker {
    const { index } = this.#ask(request, false);
    const worker = this.#workers[index];
    if (worker !== undefined) return worker;
    const most = this.#workers.length - 1;
    throw new OptionError(`Expected ${this.#policy.name} to choose an index from 0 to ${most}, got ${index}.`);
  }

  /**
   * Chooses a worker without an unfinished prefill whose cost is the lowest or nearly so; `undefined` while a busy one is
   * worth waiting for. A cost that is merely the lowest of the free ones would give away what other workers have cached.
   */
  #chooseFree(request: TraceRequest): ReplayWorker | undefined {
    const { terms } = this.#ask(request, true);
    const costs = terms?.map(({ cost }) => cost);
    if (costs === undefined || costs.includes(undefined)) {
      throw new OptionError(`Expected a policy with a cost to hold requests by (--hold), got ${this.#policy.name}.`);
    }
    const limit = Math.min(...(costs as number[])) + (terms?.[0]?.["nearTieTokens"] ?? 0);
    let chosen: ReplayWorker | undefined;
    let lowest = Number.POSITIVE_INFINITY;
    for (const [index, worker] of this.#workers.entries()) {
      const cost = costs[index] as number;
      if (worker.load.activePrefills > 0 || cost > limit || cost >= lowest) continue;
      lowest = cost;
      chosen = worker;
    }
    return chosen;
  }

  #ask(request: TraceRequest, explain: boolean): Choice {
    const { sequenceHashes } = request;
    const { hotRequests } = this.#policy;
    this.#load.advance(this.#context.nowMs);
    this.#context.averageMissedTokens = this.#load.averageMissedTokens;
    this.#context.explain = explain;
    this.#active.consider(sequenceHashes);
    this.#context.hotBlocks = hotRequests === undefined ? 0 : this.#active.hotBlocks;
    for (const worker of this.#workers) worker.consider(sequenceHashes);
    return this.#policy.choose(this.#workers, request, this.#context);
  }

  report(): FleetReport {
    const missedBlocks = this.#workers.map((worker) => worker.load.missedBlocks);
    const missed = sum(missedBlocks);
    return {
      policy: this.#policy.name,
      hitRate: this.#hitBlocks === 0 ? 0 : this.#hitBlocks / (this.#hitBlocks + missed),
      imbalance: missed === 0 ? 1 : Math.max(...missedBlocks) / (missed / missedBlocks.length),
      evictions: sum(this.#workers.map((worker) => worker.evictedBlocks)),
      missedBlocks,
      rejected: this.#rejected,
    };
  }

  /** How long requests waited for the end of their prefill, and how even the workers were within a minute. */
  timeReport(): { readonly delayMs: DelaySummary; readonly windowImbalance: number } {
    return { delayMs: this.#delays.summary(), windowImbalance: this.#windows.imbalance() };
  }

  dispose(): void {
    for (const worker of this.#workers) worker.dispose();
    this.#blocks.dispose();
  }
}

function isEarlier(left: Ending, right: Ending): boolean {
  return left.atMs === right.atMs ? left.serial < right.serial : left.atMs < right.atMs;
}

/** @throws {OptionError} `KVROUTE_OPTION` if the request has no session */
function sessionOf({ session }: TraceRequest): string {
  if (session !== undefined) return session;
  throw new OptionError("Expected a session_id in every row of a closed loop (--closed-loop), got a row without one.");
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
