import { describe, expect, test } from "vitest";
import { blockPool, naive } from "../support/subjects.js";
import { enumerate, explore, filled } from "./explorer.js";

/** Capacity, sequences that begin in an empty pool, and those of them whose every operation changes something. */
const fromEmpty = [
  [1, 5_554_502n, 633],
  [2, 6_199_906n, 5_178],
  [3, 6_272_089n, 13_202],
] as const;

/** Hashes of an inactive list that fills its pool, next victim first; then how long the sequences are, and as above. */
const fromFull = [
  ["A", 4, 846_458n, 608],
  ["AA", 4, 1_319_448n, 4_216],
  ["AB", 4, 1_492_954n, 14_168],
  ["AAA", 3, 49_060n, 1_056],
  ["AAB", 3, 53_974n, 4_110],
  ["ABA", 3, 53_934n, 3_898],
] as const;

describe("every sequence over two hashes does what the naive model does", () => {
  for (const [capacity, sequences, paths] of fromEmpty) {
    test(`${sequences} sequences of up to 5 operations on capacity ${capacity}`, () => {
      expect(explore(blockPool, { capacity, depth: 5 })).toEqual({ sequences, paths });
    });
  }
  for (const [hashes, depth, sequences, paths] of fromFull) {
    test(`${sequences} sequences of up to ${depth} operations after ${hashes} was cached`, () => {
      expect(explore(blockPool, { capacity: hashes.length, depth, start: filled(hashes) })).toEqual({
        sequences,
        paths,
      });
    });
  }

  for (const [capacity] of fromEmpty) {
    test(`and so do all of up to 3 operations, each on its own from the start, on capacity ${capacity}`, () => {
      expect(enumerate(blockPool, capacity, 3)).toBe(explore(naive, { capacity, depth: 3 }).sequences);
    });
  }
});
