import type { WorkerWithDpRank } from "../../core/keys.js";
import type { CandidateLoad } from "../policy.js";
import type { LoadBooking } from "./booking.js";
import type { RecentClock } from "./recent.js";

/** How fast old samples of a worker's speed fade: each counts 2 % less with every prefill that ends. */
const SAMPLE_FADING = 0.98;

/** What is booked on one (worker, rank). Counters are whole numbers, so that all are exactly zero when nothing is booked. */
export class WorkerLoad implements CandidateLoad {
  readonly worker: WorkerWithDpRank;
  missedBlocks = 0;
  activeRequests = 0;
  activePrefills = 0;
  activePrefillTokens = 0;
  endedPrefills = 0;
  headSinceMs = 0;
  /** Prompt blocks in use, shared ones once. */
  promptBlocks = 0;
  /** Output blocks in use, in `OUTPUT_PARTS` of a block: fractions of these add up without a rest. */
  outputParts = 0;

  readonly #recentClock: RecentClock;
  #recent = 0;
  #recentEpoch = 0;
  #doneTokens = 0;
  #doneMs = 0;
  #head: LoadBooking | null = null;
  #tail: LoadBooking | null = null;

  constructor(worker: WorkerWithDpRank, recentClock: RecentClock) {
    this.worker = worker;
    this.#recentClock = recentClock;
  }

  get activeBlocks(): number {
    return this.promptBlocks + this.outputParts / OUTPUT_PARTS;
  }

  get headTokens(): number {
    return this.#head === null ? 0 : this.#head.missedTokens;
  }

  get tokensPerMs(): number {
    return this.#doneMs === 0 ? 0 : this.#doneTokens / this.#doneMs;
  }

  get recentTokens(): number {
    return this.#recent * this.#recentClock.worth(this.#recentEpoch);
  }

  /** Counts tokens as given to the worker at the time that the clock of recent work shows. */
  addRecent(tokens: number): void {
    this.#recent = this.recentTokens + tokens;
    this.#recentEpoch = this.#recentClock.nowMs;
  }

  /** Puts a booking at the end of the queue of prefills. */
  enqueue(booking: LoadBooking, nowMs: number): void {
    booking.before = this.#tail;
    if (this.#tail === null) {
      this.#head = booking;
      this.headSinceMs = nowMs;
    } else {
      this.#tail.after = booking;
    }
    this.#tail = booking;
    this.activePrefills++;
    this.activePrefillTokens += booking.missedTokens;
  }

  /**
   * Takes a booking out of the queue of prefills. One that has ended is a sample of the worker's speed: for the router the
   * worker has worked on it since the one before it ended. The next begins now, also where they end out of turn.
   */
  dequeue(booking: LoadBooking, nowMs: number, hasEnded: boolean): void {
    const wasHead = this.#head === booking;
    if (hasEnded) this.#learn(booking.missedTokens, nowMs - this.headSinceMs);
    if (hasEnded || wasHead) this.headSinceMs = nowMs;
    if (booking.before === null) this.#head = booking.after;
    else booking.before.after = booking.after;
    if (booking.after === null) this.#tail = booking.before;
    else booking.after.before = booking.before;
    booking.before = null;
    booking.after = null;
    this.activePrefills--;
    this.activePrefillTokens -= booking.missedTokens;
  }

  #learn(tokens: number, ms: number): void {
    if (ms < 0) return; // the clock was set back: how long it took is not known
    this.#doneTokens = this.#doneTokens * SAMPLE_FADING + tokens;
    this.#doneMs = this.#doneMs * SAMPLE_FADING + ms;
    this.endedPrefills++;
  }
}

/** Output is counted in parts of a block, so that sums of decayed blocks are exact. */
export const OUTPUT_PARTS = 1024;
