import fc from "fast-check";
import type { Space } from "./choices.js";

/** Few hashes and few blocks: every rule is met within a few commands. */
export const small: Space = {
  capacity: fc.integer({ min: 1, max: 6 }),
  hash: fc.bigInt({ min: 0n, max: 3n }),
  blocks: fc.integer({ min: 0, max: 4 }),
};

/** Hashes that differ in one bit, in one half only, or not at all as doubles. */
export const extreme: Space = {
  capacity: fc.integer({ min: 1, max: 40 }),
  hash: fc.oneof(
    fc.constantFrom(0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 53n - 1n, 2n ** 53n),
    fc.constantFrom(2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 63n + 1n, 2n ** 64n - 2n, 2n ** 64n - 1n),
    fc.nat({ max: 7 }).map((n) => (BigInt(n) << 32n) | 0xdead_beefn),
    fc.nat({ max: 7 }).map((n) => (0xdead_beefn << 32n) | BigInt(n)),
    fc.nat({ max: 7 }).map((n) => BigInt(n) << 61n),
  ),
  blocks: fc.integer({ min: 0, max: 12 }),
};

/** Thousands of blocks: the arena and the index grow several times, also within a request. */
export const growing: Space = {
  capacity: fc.integer({ min: 700, max: 6_000 }),
  hash: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  blocks: fc.oneof(
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 40 }) },
    { weight: 2, arbitrary: fc.integer({ min: 100, max: 1_500 }) },
  ),
};
