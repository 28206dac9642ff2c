import fc from "fast-check";
import { type Space, scattered } from "./choices.js";

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

const GOLDEN = 0x9e37_79b9_7f4a_7c15n;
const FIRST_BIT = 54n; // above the bits that choose among a million buckets

/** The n-th of the hashes that the core's index mixes to one bucket and one tag: see `mix` of assembly/hash-index.ts. */
function collision(n: number): bigint {
  const folded = BigInt.asUintN(64, (BigInt(n) << FIRST_BIT) * inverse(GOLDEN));
  return folded ^ (folded >> 32n);
}

/** The number by which an odd one multiplies to 1, modulo 2 ** 64: each of Newton's steps doubles the bits that are right. */
function inverse(odd: bigint): bigint {
  let guess = odd;
  for (let bits = 3; bits < 64; bits *= 2) guess = BigInt.asUintN(64, guess * (2n - odd * guess));
  return guess;
}

const COLLISIONS = Array.from({ length: 200 }, (_, n) => collision(n));

/** Hashes that all want the same place in the index. */
export const colliding: Space = {
  capacity: fc.integer({ min: 20, max: 160 }),
  hash: fc.constantFrom(...COLLISIONS),
  blocks: fc.integer({ min: 0, max: 60 }),
  follow: (hash, i) => COLLISIONS[(COLLISIONS.indexOf(hash) + i) % COLLISIONS.length] ?? scattered(hash, i),
};
