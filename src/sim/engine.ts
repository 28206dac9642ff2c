import type { Clock } from "../clock.js";
import { EngineError, OptionError } from "../errors.js";
import { checkRatio, countOption, type EngineOptions, type Limits } from "./engine/options.js";
import type { KvMessage } from "./engine/payload.js";
import { type EngineRun, Run, type RunListener } from "./engine/run.js";
import { type Outcome, Scheduler } from "./engine/scheduler.js";
import type { EngineRequest, FinishReason, Sequence } from "./engine/sequence.js";
import { EngineCounters, type EngineStats } from "./engine/stats.js";
import { type PassTiming, polynomialTiming } from "./engine/timing.js";
import { mixedToken } from "./engine/tokens.js";

export type { Histogram } from "./engine/histogram.js";
export type { EngineOptions, SchedulerOptions } from "./engine/options.js";
export { encodeKvEvents, type KvEvent, type KvEventBatch, type KvMessage } from "./engine/payload.js";
export type { EngineRun, RunEnd, RunListener } from "./engine/run.js";
export type { EngineRequest, FinishReason } from "./engine/sequence.js";
export type { EngineStats } from "./engine/stats.js";
export {
  type PassLoad,
  type PassTime,
  type PassTiming,
  polynomialTiming,
  type TimingTable,
  tableTiming,
} from "./engine/timing.js";
export { mix, mixedToken } from "./engine/tokens.js";

/** The longest that a pass may take, which is what timers can wait. */
const PASS_MS_MAX = 2 ** 31 - 1;
const DP_RANK_MAX = 0xffff;

/** An engine that computes nothing: it schedules requests, keeps the books of its KV cache and takes its time, as vLLM would. */
export class Engine {
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #timing: PassTiming;
  readonly #speedup: number;
  readonly #decodeSpeedup: number;
  readonly #dpRank: number;
  readonly #counters = new EngineCounters();
  readonly #runs = new Map<Sequence, Run>();
  readonly #kvListeners = new Set<(message: KvMessage) => void>();
  #kvMessages = 0;
  #timer: unknown = null;
  /** Whether a pass is to begin or to end; if not, nobody runs or waits. */
  #isAwake = false;
  #isDisposed = false;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option lies outside its range */
  constructor(clock: Clock, options: EngineOptions = {}) {
    this.#clock = clock;
    this.#timing = options.timing ?? polynomialTiming();
    this.#speedup = checkRatio("speedupRatio", options.speedupRatio ?? 1);
    this.#decodeSpeedup = checkRatio("decodeSpeedupRatio", options.decodeSpeedupRatio ?? 1);
    this.#dpRank = countOption("dpRank", options.dpRank ?? 0, 0, DP_RANK_MAX);
    this.#scheduler = new Scheduler(options, options.nextToken ?? mixedToken);
  }

  /** The options that the engine schedules by, with the defaults filled in. */
  get limits(): Limits {
    return this.#scheduler.limits;
  }

  /**
   * Takes a request.
   *
   * @throws {EngineError} `KVROUTE_ENGINE_TOO_LONG` if its prompt can never fit, `KVROUTE_ENGINE_FULL` if too many wait
   */
  submit(request: EngineRequest, listener: RunListener = {}): EngineRun {
    if (this.#isDisposed) throw new EngineError("KVROUTE_ENGINE_CLOSED", "Expected an engine, got one that is closed.");
    const sequence = this.#scheduler.add(request);
    const run = new Run(sequence, listener, this.#clock.now(), this.#abort);
    this.#runs.set(sequence, run);
    this.#counters.submitted++;
    if (!this.#isAwake) this.#timer = this.#clock.setTimeout(this.#begin, 0); // what comes in one moment shares a pass
    this.#isAwake = true;
    return run;
  }

  /** Has a listener told of the KV cache, at the beginning of each pass that changes it. Returns how to stop that. */
  onKvEvents(listener: (message: KvMessage) => void): () => void {
    this.#kvListeners.add(listener);
    return () => void this.#kvListeners.delete(listener);
  }

  stats(): EngineStats {
    const { limits, preemptions, prefixHits, prefixQueries, cache, running, numWaiting } = this.#scheduler;
    const { finished, ...counters } = this.#counters;
    return {
      ...counters,
      finished: { ...finished },
      numRunning: running.length,
      numWaiting,
      numActiveBlocks: this.#isDisposed ? 0 : cache.pool.numActive,
      numGpuBlocks: limits.numGpuBlocks,
      blockSize: limits.blockSize,
      prefixCacheQueries: prefixQueries,
      prefixCacheHits: prefixHits,
      preemptions,
    };
  }

  /** Ends all requests and lets go of the memory. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#clock.clearTimeout(this.#timer);
    this.#scheduler.finish();
    for (const run of this.#runs.values()) this.#scheduler.abort(run.sequence);
    const tell = [...this.#runs.values()].map((run) => () => this.#end(run, "abort"));
    this.#scheduler.cache.pool.dispose();
    callAll(tell);
  }

  readonly #abort = (run: Run): void => {
    if (this.#scheduler.abort(run.sequence)) this.#end(run, "abort");
  };

  readonly #begin = (): void => {
    this.#isAwake = !this.#isDisposed && this.#scheduler.schedule() !== null;
    if (!this.#isAwake) return;
    this.#timer = this.#clock.setTimeout(this.#finish, this.#passMs());
    this.#counters.passes++;
    this.#tellKvEvents();
  };

  readonly #finish = (): void => {
    const outcomes = this.#scheduler.finish();
    callAll([...outcomes.map((outcome) => () => this.#tell(outcome)), this.#begin]);
  };

  #passMs(): number {
    const { prefillMs, decodeMs } = this.#timing(this.#scheduler.load());
    const ms = (prefillMs + decodeMs / this.#decodeSpeedup) / this.#speedup;
    if (ms >= 0 && ms <= PASS_MS_MAX) return ms;
    this.dispose(); // its requests end, as without a time they would wait for ever
    throw new OptionError(`Expected the timing to give from 0 to ${PASS_MS_MAX} ms, got ${prefillMs} and ${decodeMs}.`);
  }

  #tellKvEvents(): void {
    const events = this.#scheduler.cache.takeEvents();
    if (events.length === 0) return;
    const ts = this.#clock.now() / 1000;
    const message: KvMessage = { seq: this.#kvMessages++, ts, dpRank: this.#dpRank, events, ignored: 0 };
    callAll([...this.#kvListeners].map((listener) => () => listener(message)));
  }

  #tell({ sequence, token, reason }: Outcome): void {
    const run = this.#runs.get(sequence);
    if (run === undefined) return; // a listener has disposed of the engine
    if (token !== null) this.#tellToken(run, token);
    if (reason !== null) this.#end(run, reason);
  }

  #tellToken(run: Run, token: number): void {
    const nowMs = this.#clock.now();
    const index = run.sequence.outputLength - 1;
    const counters = this.#counters;
    const histogram = index === 0 ? counters.timeToFirstTokenSeconds : counters.interTokenLatencySeconds;
    histogram.observe((nowMs - run.lastTokenMs) / 1000);
    if (index === 0) counters.promptTokens += run.promptTokens;
    counters.generationTokens++;
    run.lastTokenMs = nowMs;
    run.listener.onToken?.(token, index);
  }

  #end(run: Run, reason: FinishReason): void {
    if (run.isEnded) return;
    run.isEnded = true;
    this.#runs.delete(run.sequence);
    this.#counters.finished[reason]++;
    if (reason !== "abort") {
      if (run.outputTokens === 0) this.#counters.promptTokens += run.promptTokens;
      this.#counters.e2eRequestLatencySeconds.observe((this.#clock.now() - run.submittedMs) / 1000);
    }
    const { promptTokens, cachedTokens, outputTokens } = run;
    run.listener.onEnd?.({ reason, promptTokens, cachedTokens, outputTokens });
  }
}

/** Calls every function, also behind one that throws, and then throws what the first did. */
function callAll(functions: readonly (() => void)[]): void {
  let failed = false;
  let failure: unknown;
  for (const call of functions) {
    try {
      call();
    } catch (error) {
      if (!failed) failure = error;
      failed = true;
    }
  }
  if (failed) throw failure;
}
