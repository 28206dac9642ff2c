import { mix, type SlotFields, type SlotIndex } from "./slot-index.js";

// Open addressing: linear probing in one table of keys and slots, and a deletion that shifts back what comes behind.
//
// What was measured, as time by the time of chained buckets, at the fastest of interleaved rounds:
//
//                                  2 entries a block   4 entries a block
//   life cycle of a request              1.5                 1.25
//   touch, batches                       1.0                 0.9
//   touch, singly                    0.75 to 1.1             1.2
//   memory, bytes a block                  56                  80
//
// So 4 entries: the life cycle has misses and deletions, which pay for every cluster. (Where others fill the machine's
// caches as well, it may be the other way about: the table of 65,536 blocks takes 3 MiB instead of 1.5.)
// Entries of 4 words, which need no multiplication and never straddle two cache lines, took 1.05 to 1.1 times as long;
// a place of its entry in each slot, so that a deletion need not probe, changed nothing that could be told from noise.
// A table of one word of slot and tag an entry, with the keys in the slots, took 1.7 and 1.2 in the life cycle.
/** Entries for each block of capacity, before rounding up to a power of two. */
const ENTRIES_PER_BLOCK = 4;
/** Words of an entry: lo, hi, slot. It is free while the slot is 0. */
const ENTRY_WORDS = 3;
const SLOT = 2;

export class OpenIndex implements SlotIndex {
  readonly #table: Int32Array;
  readonly #shift: number;
  /** Words of the table. Entries are named by the position of their first word. */
  readonly #end: number;

  constructor({ capacity }: SlotFields) {
    const bits = Math.max(2, Math.ceil(Math.log2(capacity * ENTRIES_PER_BLOCK)));
    this.#table = new Int32Array(2 ** bits * ENTRY_WORDS);
    this.#shift = 32 - bits;
    this.#end = this.#table.length;
  }

  find(lo: number, hi: number): number {
    return this.#table[this.#seek(lo, hi) + SLOT] as number;
  }

  add(slot: number, lo: number, hi: number): number {
    const table = this.#table;
    const at = this.#seek(lo, hi);
    const standing = table[at + SLOT] as number;
    if (standing === 0) {
      table[at] = lo;
      table[at + 1] = hi;
      table[at + SLOT] = slot;
    }
    return standing;
  }

  remove(slot: number, lo: number, hi: number): void {
    const table = this.#table;
    let hole = this.#homeOf(lo, hi);
    while (table[hole + SLOT] !== slot) hole = this.#after(hole);
    for (let at = this.#after(hole); table[at + SLOT] !== 0; at = this.#after(at)) {
      const home = this.#homeOf(table[at] as number, table[at + 1] as number);
      // An entry moves unless its home lies behind the hole; the way from the hole to the entry may wrap.
      if (at > hole ? home <= hole || home > at : home <= hole && home > at) {
        table[hole] = table[at] as number;
        table[hole + 1] = table[at + 1] as number;
        table[hole + SLOT] = table[at + SLOT] as number;
        hole = at;
      }
    }
    table[hole + SLOT] = 0;
  }

  replace(slot: number, successor: number, lo: number, hi: number): void {
    const at = this.#seek(lo, hi);
    if (this.#table[at + SLOT] === slot) this.#table[at + SLOT] = successor;
  }

  /** The entry of a hash, or the free one where the search for it ends; what a free one has for a key is no matter. */
  #seek(lo: number, hi: number): number {
    const table = this.#table;
    let at = this.#homeOf(lo, hi);
    while ((table[at] !== lo || table[at + 1] !== hi) && table[at + SLOT] !== 0) at = this.#after(at);
    return at;
  }

  #after(at: number): number {
    const next = at + ENTRY_WORDS;
    return next === this.#end ? 0 : next;
  }

  #homeOf(lo: number, hi: number): number {
    return (mix(lo, hi) >>> this.#shift) * ENTRY_WORDS;
  }
}
