import { describe, expect, test } from "vitest";
import { BookedBlocks } from "../../src/core/booked-blocks.js";
import { scale } from "../support/scale.js";
import type { BookedOptions, BookedUnderTest } from "./booked-blocks-naive.js";
import { type BookedCall, BookedWorld } from "./booked-blocks-world.js";

const [A, B] = [0xa000_0000_0000_000an, 0xb000_0000_0000_000an] as const; // equal in their lower half
const LISTS: readonly (readonly bigint[])[] = [[A], [A, B], [A, A], [B, A]];
const WORKERS = [
  { workerId: 1, dpRank: 0 },
  { workerId: 1, dpRank: 1 },
];

/** Every call of a small alphabet. */
const ALPHABET: readonly BookedCall[] = LISTS.flatMap((list) => [
  { text: `settle([${list}])`, act: (blocks: BookedUnderTest) => blocks.settle(list) },
  ...WORKERS.flatMap((worker) => [
    { text: `book(${worker.dpRank}, [${list}])`, act: (blocks: BookedUnderTest) => blocks.book(worker, list) },
    ...[true, false].map((waits) => ({
      text: `unbook(${worker.dpRank}, [${list}], ${waits})`,
      act: (blocks: BookedUnderTest) => blocks.unbook(worker, list, waits),
    })),
  ]),
]);

/** Runs every sequence of calls of a length on a table and on the naive one. Returns how many there are. */
function enumerate(options: BookedOptions, length: number): number {
  const real = new BookedBlocks(options);
  const digits = new Array<number>(length).fill(0);
  let count = 0;
  do {
    const world = new BookedWorld(real, options);
    for (const digit of digits) world.call(ALPHABET[digit] as BookedCall);
    world.compare([A, B]);
    world.drain(); // empty again, for the next sequence
    count++;
  } while (increment(digits));
  return count;
}

/** Counts up in the base of the alphabet. Returns false once it starts again at 0. */
function increment(digits: number[]): boolean {
  for (let place = 0; place < digits.length; place++) {
    digits[place] = ((digits[place] as number) + 1) % ALPHABET.length;
    if (digits[place] !== 0) return true;
  }
  return false;
}

describe("every sequence of calls has the outcome of the naive table", () => {
  const length = scale < 1 ? 2 : 3;
  for (const options of [{}, { maxBlocks: 1 }, { maxBlocks: 3 }]) {
    test(`of ${length} calls, with ${JSON.stringify(options)}`, () => {
      expect(enumerate(options, length)).toBe(ALPHABET.length ** length);
    });
  }
});
