import { mix, type SlotFields, type SlotIndex } from "./slot-index.js";

// Chained buckets: a head for each, and the chain runs through a word of the slots themselves.
//
// With 1, 2, 4, 8 heads a block the life cycle of pool.ts took 1.6, 1.05 to 1.2, 1, 0.9 to 1.15 of the time (the busier
// the machine's caches, the worse for many heads). A bucket of at most one hash is a branch that is predicted, and a
// removal from it is one store that moves nobody.
/** Heads of buckets for each block of capacity, before rounding up to a power of two. */
const HEADS_PER_BLOCK = 4;

export class BucketIndex implements SlotIndex {
  /** The first slot of each bucket, or 0. */
  readonly #heads: Int32Array;
  readonly #shift: number;
  readonly #keys: Int32Array;
  /** The next slot in the bucket, or 0. */
  readonly #following: Int32Array;

  constructor({ capacity, keys, following }: SlotFields) {
    const bits = Math.max(2, Math.ceil(Math.log2(capacity * HEADS_PER_BLOCK)));
    this.#heads = new Int32Array(2 ** bits);
    this.#shift = 32 - bits;
    this.#keys = keys;
    this.#following = following;
  }

  find(lo: number, hi: number): number {
    return this.#findFrom(this.#heads[mix(lo, hi) >>> this.#shift] as number, lo, hi);
  }

  add(slot: number, lo: number, hi: number): number {
    const bucket = mix(lo, hi) >>> this.#shift;
    const first = this.#heads[bucket] as number;
    const standing = this.#findFrom(first, lo, hi);
    if (standing === 0) {
      this.#following[slot] = first;
      this.#heads[bucket] = slot;
    }
    return standing;
  }

  remove(slot: number, lo: number, hi: number): void {
    const bucket = mix(lo, hi) >>> this.#shift;
    const next = this.#following[slot] as number;
    if (this.#heads[bucket] === slot) this.#heads[bucket] = next;
    else this.#following[this.#before(bucket, slot)] = next;
  }

  replace(slot: number, successor: number, lo: number, hi: number): void {
    const bucket = mix(lo, hi) >>> this.#shift;
    const next = this.#following[slot] as number;
    if (this.#heads[bucket] === slot) {
      this.#heads[bucket] = successor;
    } else {
      const before = this.#before(bucket, slot);
      if (before === 0) return;
      this.#following[before] = successor;
    }
    this.#following[successor] = next;
  }

  #findFrom(first: number, lo: number, hi: number): number {
    const keys = this.#keys;
    let slot = first;
    while (slot !== 0 && (keys[slot << 1] !== lo || keys[(slot << 1) + 1] !== hi)) {
      slot = this.#following[slot] as number;
    }
    return slot;
  }

  /** The slot of a bucket that `slot` follows, or 0. */
  #before(bucket: number, slot: number): number {
    const following = this.#following;
    let before = this.#heads[bucket] as number;
    while (before !== 0 && following[before] !== slot) before = following[before] as number;
    return before;
  }
}
