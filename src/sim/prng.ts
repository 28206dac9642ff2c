import { OptionError } from "../errors.js";

/**
 * A seeded source of chance: sfc32 (Chris Doty-Humphrey, PractRand), 128 bits of state.
 *
 * The same seed gives the same numbers on every runtime: only 32-bit integer arithmetic, `+ - * /` and comparisons
 * are used, never `Math.log` and its like, whose last bit differs from engine to engine.
 */
export class Prng {
  #a: number;
  #b: number;
  #c = 0x9e37_79b9; // any constant: the warm-up mixes it in
  #counter = 1;

  /**
   * @param seed a whole number from 0 to 2^53 - 1
   * @throws {OptionError} `KVROUTE_OPTION` for any other seed
   */
  constructor(seed: number) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new OptionError(`Expected a seed from 0 to ${Number.MAX_SAFE_INTEGER}, got ${seed}.`);
    }
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 2 ** 32) | 0;
    for (let round = 0; round < 15; round++) this.uint32(); // until each bit of the seed reaches all of the state
  }

  /** Gives a whole number from 0 to 2^32 - 1. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Gives a number from 0 up to, but not including, 1, in steps of 2^-53. */
  random(): number {
    const high = this.uint32() >>> 5;
    const low = this.uint32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** Gives a whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  /**
   * Gives an exponentially distributed number of mean 1, without a logarithm.
   *
   * Von Neumann's method (1951): a run of falling uniform numbers that starts at u has an odd length with
   * probability e^-u. A run of even length is rejected and adds 1 to the result.
   */
  exponential(): number {
    for (let whole = 0; ; whole++) {
      const first = this.random();
      let last = first;
      let length = 1;
      for (let next = this.random(); next < last; next = this.random()) {
        last = next;
        length++;
      }
      if (length % 2 === 1) return whole + first;
    }
  }
}

/** Prepares draws from 0 to `count` - 1 in which rank k comes 1 / (k + 1) times as often as rank 0 (Zipf's law). */
export function zipf(count: number): (chance: Prng) => number {
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank++) {
    sum += 1 / (rank + 1);
    cumulative[rank] = sum;
  }
  return (chance) => firstAbove(cumulative, chance.random() * sum);
}

/** Finds the first place in a rising list that holds more than a value. */
function firstAbove(rising: Float64Array, value: number): number {
  let from = 0;
  let to = rising.length - 1;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((rising[middle] ?? 0) > value) to = middle;
    else from = middle + 1;
  }
  return from;
}
