/**
 * The index of `TypedArrayPool`: from a hash, in two halves, to the slot of its oldest copy.
 *
 * A pool of one index runs in a process of its own, so that V8 sees one class behind these calls and inlines them.
 */
export interface SlotIndex {
  /** The slot that stands for a hash, or 0. */
  find(lo: number, hi: number): number;
  /** Puts a slot in for its hash and returns 0, or returns the slot that stands there already and changes nothing. */
  add(slot: number, lo: number, hi: number): number;
  /** Takes out a slot, which stands for its hash. */
  remove(slot: number, lo: number, hi: number): void;
  /** Lets `successor` stand for the hash if `slot` does now; `slot` may also be one of the copies that do not stand. */
  replace(slot: number, successor: number, lo: number, hi: number): void;
}

/** What the pool lends to its index. */
export interface SlotFields {
  readonly capacity: number;
  /** The halves of the hash of slot n, at 2n and 2n + 1. Kept by the pool. */
  readonly keys: Int32Array;
  /** A word of the index for each slot that stands for a hash. */
  readonly following: Int32Array;
}

/** Mixes the halves of a hash: multiplicative hashing, the high bits of the product are to be used. */
export function mix(lo: number, hi: number): number {
  return Math.imul(lo ^ Math.imul(hi, 0x85ebca6b), 0x9e3779b1);
}
