import type { Clock } from "../clock.js";
import { OptionError } from "../errors.js";
import { Heap } from "./heap.js";

/** What may be waiting and what may happen in one go, where the options say nothing else. */
export const TIMERS_MAX_DEFAULT = 1_000_000;
export const STEPS_MAX_DEFAULT = 100_000_000;

interface Timer {
  readonly atMs: number;
  readonly id: number;
  readonly callback: () => void;
}

function isEarlier(left: Timer, right: Timer): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.id < right.id);
}

export interface VirtualClockOptions {
  /** Where the clock starts. Default 0. */
  readonly startMs?: number | undefined;
  /** Timers that may be set at a time. Default `TIMERS_MAX_DEFAULT`. */
  readonly timersMax?: number | undefined;
}

/** A clock that stands still until it is told to go on, and then goes from timer to timer, those of one moment in order. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #ids = 0;
  readonly #timersMax: number;
  /** Those that are set; a cleared timer stays in the heap until its moment. */
  readonly #set = new Set<number>();
  #heap = new Heap<Timer>(isEarlier);

  constructor(options: VirtualClockOptions = {}) {
    this.#nowMs = options.startMs ?? 0;
    this.#timersMax = options.timersMax ?? TIMERS_MAX_DEFAULT;
  }

  readonly now = (): number => this.#nowMs;

  /** @throws {OptionError} `KVROUTE_OPTION` if the delay is not a number, or if too many timers are set */
  readonly setTimeout = (callback: () => void, delayMs: number): unknown => {
    if (!(delayMs < Number.POSITIVE_INFINITY)) {
      throw new OptionError(`Expected a delay that is a finite number of milliseconds, got ${delayMs}.`);
    }
    if (this.#set.size >= this.#timersMax) {
      throw new OptionError(`Expected at most ${this.#timersMax} timers at a time, got one more.`);
    }
    const id = ++this.#ids;
    this.#set.add(id);
    this.#heap.push({ atMs: this.#nowMs + Math.max(0, delayMs), id, callback });
    return id;
  };

  readonly clearTimeout = (handle: unknown): void => {
    this.#set.delete(handle as number);
    // Cleared timers may outnumber the others many times where each request sets a timer and clears it.
    if (this.#heap.size > 2 * this.#set.size + 64) this.#sweep();
  };

  /** Counts the timers that are set. */
  get pending(): number {
    return this.#set.size;
  }

  /** The moment of the next timer, `null` if none is set. */
  get nextMs(): number | null {
    return this.#peek()?.atMs ?? null;
  }

  /** Goes to the next timer and lets it happen. Returns whether there was one. */
  step(): boolean {
    const timer = this.#peek();
    if (timer === undefined) return false;
    this.#heap.pop();
    this.#set.delete(timer.id);
    this.#nowMs = timer.atMs;
    timer.callback();
    return true;
  }

  /** Goes on by so many milliseconds and lets everything happen that falls due. */
  advance(durationMs: number, stepsMax: number = STEPS_MAX_DEFAULT): void {
    const endMs = this.#nowMs + durationMs;
    this.#run(endMs, stepsMax);
    this.#nowMs = Math.max(this.#nowMs, endMs);
  }

  /**
   * Goes on until no timer is set.
   *
   * @throws {OptionError} `KVROUTE_OPTION` if that takes more than `stepsMax` timers: something sets one after the other
   */
  runAll(stepsMax: number = STEPS_MAX_DEFAULT): void {
    this.#run(Number.POSITIVE_INFINITY, stepsMax);
  }

  #run(endMs: number, stepsMax: number): void {
    for (let steps = 0; ; steps++) {
      const next = this.nextMs;
      if (next === null || next > endMs) return;
      if (steps === stepsMax) throw new OptionError(`Expected at most ${stepsMax} timers to fall due, got one more.`);
      this.step();
    }
  }

  #peek(): Timer | undefined {
    for (let first = this.#heap.first; first !== undefined; first = this.#heap.first) {
      if (this.#set.has(first.id)) return first;
      this.#heap.pop();
    }
    return undefined;
  }

  #sweep(): void {
    const old = this.#heap;
    this.#heap = new Heap<Timer>(isEarlier);
    for (let timer = old.pop(); timer !== undefined; timer = old.pop())
      if (this.#set.has(timer.id)) this.#heap.push(timer);
  }
}
