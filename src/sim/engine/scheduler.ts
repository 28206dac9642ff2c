import { EngineError } from "../../errors.js";
import { KvCache } from "./kv-cache.js";
import { checkLimits, type Limits, type SchedulerOptions } from "./options.js";
import { checkRequest } from "./request.js";
import { type EngineRequest, type FinishReason, Sequence } from "./sequence.js";
import type { PassLoad } from "./timing.js";
import { WaitingLine } from "./waiting.js";

/** What a pass computes of one sequence. */
export interface Scheduled {
  readonly sequence: Sequence;
  readonly tokens: number;
  readonly isPrefill: boolean;
}

/** What came of one sequence in a pass. */
export interface Outcome {
  readonly sequence: Sequence;
  /** The token that it got, `null` if its prompt is not computed yet or nothing is wanted of it. */
  readonly token: number | null;
  /** Why it has ended, `null` if it goes on. */
  readonly reason: FinishReason | null;
}

/**
 * Decides what an engine computes next, as vLLM's does: a budget of tokens for each pass, first for those that run, then
 * for those that wait. It knows no time: `schedule` begins a pass, and `finish` ends it.
 */
export class Scheduler {
  readonly limits: Limits;
  readonly cache: KvCache;
  readonly #nextToken: (seed: bigint, index: number) => number;
  readonly #waiting = new WaitingLine();
  #running: Sequence[] = [];
  #pass: readonly Scheduled[] | null = null;
  /** Sequences that were put back to the line. */
  preemptions = 0;
  /** Tokens that were looked up in the cache at first admissions, and those that were there. */
  prefixQueries = 0;
  prefixHits = 0;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option lies outside its range */
  constructor(options: SchedulerOptions, nextToken: (seed: bigint, index: number) => number) {
    this.limits = checkLimits(options);
    this.cache = new KvCache(this.limits);
    this.#nextToken = nextToken;
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  get waiting(): readonly Sequence[] {
    return this.#waiting.list();
  }

  get numWaiting(): number {
    return this.#waiting.size;
  }

  /**
   * Puts a request into the line.
   *
   * @throws {EngineError} `KVROUTE_ENGINE_TOO_LONG` if it can never run, `KVROUTE_ENGINE_FULL` if the line is full
   */
  add(request: EngineRequest): Sequence {
    checkRequest(request);
    const { maxModelLen, maxNumWaiting, blockSize, enablePrefixCaching } = this.limits;
    const { length } = request.promptTokens;
    if (length > maxModelLen) {
      const message = `Expected a prompt of at most ${maxModelLen} tokens, which is what the engine can hold, got ${length}.`;
      throw new EngineError("KVROUTE_ENGINE_TOO_LONG", message);
    }
    if (this.#waiting.size >= maxNumWaiting) {
      throw new EngineError("KVROUTE_ENGINE_FULL", `Expected at most ${maxNumWaiting} waiting requests, got one more.`);
    }
    const sequence = new Sequence(request, blockSize, enablePrefixCaching);
    this.#waiting.enqueue(sequence);
    return sequence;
  }

  /** Ends a sequence: at once, or with the pass that computes it. Returns whether it is gone already. */
  abort(sequence: Sequence): boolean {
    if (this.#waiting.delete(sequence)) return true;
    if (!this.#running.includes(sequence)) return true;
    sequence.isAborted = true;
    if (this.#pass?.some((entry) => entry.sequence === sequence)) return false;
    this.#remove(sequence);
    return true;
  }

  /** Begins a pass. Returns what it computes, in order, or `null` if there is nothing to do. */
  schedule(): readonly Scheduled[] | null {
    const pass: Scheduled[] = [];
    const preemptions = this.preemptions;
    const budget = this.#scheduleRunning(pass, this.limits.maxNumBatchedTokens);
    if (this.preemptions === preemptions) this.#scheduleWaiting(pass, budget); // else there is no room
    this.#pass = pass.length === 0 ? null : pass;
    return this.#pass;
  }

  /** Ends the pass: every sequence of it that is computed to its end gets a token. */
  finish(): Outcome[] {
    const pass = this.#pass ?? [];
    this.#pass = null;
    return pass.map(({ sequence }) => {
      const outcome = this.#advance(sequence);
      if (outcome.reason !== null) this.#remove(sequence);
      return outcome;
    });
  }

  /** Sums up what the pass that is under way computes. */
  load(): PassLoad {
    const pass = this.#pass ?? [];
    const prefills = pass.filter(({ isPrefill }) => isPrefill);
    const decodes = pass.filter(({ isPrefill }) => !isPrefill);
    const prefillTokens = sum(prefills, ({ tokens }) => tokens);
    const { pool } = this.cache;
    return {
      prefillRequests: prefills.length,
      prefillTokens,
      prefixTokens: sum(prefills, ({ sequence }) => sequence.computed) - prefillTokens,
      decodeRequests: decodes.length,
      decodeContextTokens: sum(decodes, ({ sequence }) => sequence.length) / Math.max(1, decodes.length),
      activeKvTokens: pool.numActive * this.limits.blockSize,
      totalKvTokens: pool.capacity * this.limits.blockSize,
    };
  }

  #scheduleRunning(pass: Scheduled[], tokensMax: number): number {
    let budget = tokensMax;
    for (let at = 0; at < this.#running.length && budget > 0; at++) {
      const sequence = this.#running[at] as Sequence;
      const tokens = Math.min(sequence.length - sequence.computed, budget);
      if (!this.#makeRoom(sequence, sequence.computed + tokens)) break;
      this.#compute(pass, sequence, tokens);
      budget -= tokens;
    }
    return budget;
  }

  /** Preempts the last that run until a sequence has room, or is preempted itself. */
  #makeRoom(sequence: Sequence, tokens: number): boolean {
    while (!this.cache.grow(sequence, tokens)) {
      const victim = this.#running.pop() as Sequence; // it is `sequence` itself at the latest
      this.cache.release(victim);
      victim.preemptions++;
      this.preemptions++;
      this.#waiting.putFirst(victim);
      if (victim === sequence) return false;
    }
    return true;
  }

  #scheduleWaiting(pass: Scheduled[], tokensMax: number): void {
    const { blockSize, maxNumSeqs, enableChunkedPrefill } = this.limits;
    let budget = tokensMax;
    // As long as there is budget, every prefill that runs has got all of its blocks: none has to be kept free for it.
    while (budget > 0 && this.#running.length < maxNumSeqs) {
      const sequence = this.#waiting.head;
      if (sequence === undefined) return;
      const { resident, active } = this.cache.match(sequence);
      if (this.cache.blocksOf(sequence.length) - active > this.cache.free) return;
      const cached = resident * blockSize;
      const tokens = Math.min(sequence.length - cached, budget);
      if (!enableChunkedPrefill && cached + tokens < sequence.length) return;
      if (!this.cache.admit(sequence, resident, cached + tokens)) return;
      this.#admit(sequence, cached);
      this.#compute(pass, sequence, tokens);
      budget -= tokens;
    }
  }

  #admit(sequence: Sequence, cached: number): void {
    this.#waiting.delete(sequence);
    this.#running.push(sequence);
    sequence.computed = cached;
    sequence.prefillEnd = sequence.length;
    if (sequence.cachedTokens >= 0) return; // it comes back after a preemption
    sequence.cachedTokens = cached;
    if (!this.limits.enablePrefixCaching) return;
    this.prefixQueries += sequence.length;
    this.prefixHits += cached;
  }

  // Blocks are cached when the pass begins that fills them, so that a later request of the same pass can share them.
  #compute(pass: Scheduled[], sequence: Sequence, tokens: number): void {
    pass.push({ sequence, tokens, isPrefill: sequence.isPrefilling });
    sequence.computed += tokens;
    this.cache.complete(sequence);
  }

  #advance(sequence: Sequence): Outcome {
    if (sequence.isAborted) return { sequence, token: null, reason: "abort" };
    if (sequence.computed < sequence.length) return { sequence, token: null, reason: null };
    const { maxTokens, answer } = sequence.request;
    const index = sequence.outputLength;
    if (maxTokens === 0) return { sequence, token: null, reason: "stop" };
    const token = answer?.[index] ?? this.#nextToken(sequence.seed, index);
    sequence.append(token);
    if (index + 1 === answer?.length) return { sequence, token, reason: "stop" };
    const isFull = index + 1 >= maxTokens || sequence.length >= this.limits.maxModelLen;
    return { sequence, token, reason: isFull ? "length" : null };
  }

  #remove(sequence: Sequence): void {
    this.#running.splice(this.#running.indexOf(sequence), 1);
    this.cache.release(sequence);
  }
}

function sum<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((total, item) => total + amount(item), 0);
}
