import { ArgumentRangeError, SelectionLimitError } from "../errors.js";
import { checkNumber, checkTime } from "./cache/checks.js";
import { countOption, positiveOption, weightOption } from "./policies/numbers.js";

export interface HoldQueueOptions {
  /** How many requests may be held, 1 to 1,000,000. Default 1,024. */
  readonly maxHeld?: number | undefined;
  /**
   * How much of the prefill that a worker could have done while a request waited is taken off what it has to compute: at 0
   * long prompts may wait for ever behind short ones, at 1 for as long as their own prefill takes. Default 0.3.
   */
  readonly ageing?: number | undefined;
  /** After this time a request is overdue, in milliseconds. Above 0, default one minute. */
  readonly maxWaitMs?: number | undefined;
}

export const HELD_DEFAULT = 1_024;
export const HELD_MAX = 1_000_000;
export const AGEING_DEFAULT = 0.3;
export const HOLD_WAIT_MS_DEFAULT = 60_000;

/** A request that is held. Its place is its own: it can be cancelled, whoever stands before it. */
export interface Held<Item> {
  readonly item: Item;
  readonly sinceMs: number;
}

/**
 * Holds requests in the router until a worker has no unfinished prefill, and hands over those first that have least to
 * compute, less what they have gained by waiting. It has neither a clock nor timers: whoever drives it says when a worker is
 * free and what time it is.
 */
export class HoldQueue<Item> {
  readonly #maxHeld: number;
  readonly #ageing: number;
  readonly #maxWaitMs: number;
  /** In the order of arrival, as a Set keeps the order of insertion. */
  readonly #held = new Set<Held<Item>>();
  #nowMs = Number.NEGATIVE_INFINITY;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option is out of range */
  constructor(options: HoldQueueOptions = {}) {
    const { maxHeld = HELD_DEFAULT, ageing = AGEING_DEFAULT, maxWaitMs = HOLD_WAIT_MS_DEFAULT } = options;
    this.#maxHeld = countOption("maxHeld", maxHeld, 1, HELD_MAX);
    this.#ageing = weightOption("ageing", ageing);
    this.#maxWaitMs = positiveOption("maxWaitMs", maxWaitMs);
  }

  /** Counts the requests that are held. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Holds a request, or throws and changes nothing.
   *
   * @throws {SelectionLimitError} `KVROUTE_QUEUE_FULL` if as many are held as may be
   */
  hold(item: Item, nowMs: number): Held<Item> {
    checkTime(nowMs, "nowMs");
    if (this.#held.size >= this.#maxHeld) {
      throw new SelectionLimitError("KVROUTE_QUEUE_FULL", "held requests (maxHeld)", this.#maxHeld);
    }
    const held: Held<Item> = { item, sinceMs: this.#advance(nowMs) };
    this.#held.add(held);
    return held;
  }

  /** Lets a request go at once. Returns whether it was still held. */
  cancel(held: Held<Item>): boolean {
    return this.#held.delete(held);
  }

  /**
   * Takes the request that is to be handed over next, of several equal ones the one that came first.
   *
   * @param tokensPerMs how fast a worker computes; 0 if it is not known, and then nobody gains by waiting
   * @param missedTokens tells how many tokens of a request would have to be computed, or `undefined` where no worker may have
   *   it now; it must leave the queue alone
   * @returns the request, or `undefined` if none can be handed over now
   */
  take(nowMs: number, tokensPerMs: number, missedTokens: (item: Item) => number | undefined): Item | undefined {
    checkTime(nowMs, "nowMs");
    checkNumber(tokensPerMs, "tokensPerMs");
    if (!(tokensPerMs >= 0 && tokensPerMs < Number.POSITIVE_INFINITY)) {
      throw new ArgumentRangeError(`Expected tokensPerMs to be a finite number, 0 or more, got ${tokensPerMs}.`);
    }
    const time = this.#advance(nowMs);
    const gain = this.#ageing * tokensPerMs;
    let least = Number.POSITIVE_INFINITY;
    let next: Held<Item> | undefined;
    for (const held of this.#held) {
      const missed = missedTokens(held.item);
      if (missed === undefined) continue;
      const left = missed - gain * (time - held.sinceMs);
      if (!(left < least)) continue; // also where it is no number
      least = left;
      next = held;
    }
    if (next !== undefined) this.#held.delete(next);
    return next?.item;
  }

  /**
   * Takes the request that came first if it has waited for longer than `maxWaitMs`. Whoever drives the queue decides what
   * becomes of it, such as to send it to a busy worker.
   */
  takeOverdue(nowMs: number): Item | undefined {
    checkTime(nowMs, "nowMs");
    const time = this.#advance(nowMs);
    for (const held of this.#held) {
      if (time - held.sinceMs <= this.#maxWaitMs) return undefined; // nobody has waited for longer than the first
      this.#held.delete(held);
      return held.item;
    }
    return undefined;
  }

  /** Says what time it is: it stands still while the clock is set back, so that the order of arrival is that of waiting. */
  #advance(nowMs: number): number {
    this.#nowMs = Math.max(this.#nowMs, nowMs);
    return this.#nowMs;
  }
}
