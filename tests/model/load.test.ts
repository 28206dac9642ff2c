import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BookedBlocks } from "../../src/core/booked-blocks.js";
import type { LoadRequest } from "../../src/selection/load.js";
import { scaled } from "../support/scale.js";
import { MapBlockBook } from "./load-map-book.js";
import { type BookUnderTest, LoadStage, type Step } from "./load-stage.js";

const hashes = (length: number, branch: number): BigUint64Array =>
  BigUint64Array.from({ length }, (_, at) => BigInt(at < branch ? at : 100 * branch + at)); // alike up to the branch

const requestOf = (blocks: number, branch: number, missed: number, trackPrefill: boolean): LoadRequest => ({
  sequenceHashes: hashes(blocks, branch),
  missedTokens: 16 * missed + 1,
  missedBlocks: missed,
  trackPrefill,
});

const requests = fc
  .tuple(fc.nat(6), fc.nat(3), fc.nat(5), fc.boolean())
  .map(([blocks, branch, missed, isTracked]) => requestOf(blocks, branch, missed, isTracked || missed > 1));

const booking = fc.nat(12);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant("book"), worker: fc.nat(3), request: requests }) },
  { weight: 3, arbitrary: fc.record({ verb: fc.constantFrom("endPrefill", "release"), booking }) },
  {
    weight: 3,
    arbitrary: fc.record({
      verb: fc.constant("addOutputBlock"),
      booking,
      decay: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    }),
  },
  // It may go back as well.
  { weight: 2, arbitrary: fc.record({ verb: fc.constant("advance"), ms: fc.integer({ min: -200, max: 5_000 }) }) },
);

/** Finds how many prefills wait for a block by asking from how many on it is hot. */
function waitingFor(blocks: BookedBlocks, hash: bigint): number {
  let waiting = 0;
  while (blocks.potential(BigUint64Array.of(hash), waiting + 1).hotBlocks === 1) waiting++;
  return waiting;
}

describe("booked load beside the naive one", () => {
  test("counts the same after every step, and nothing when all is released", () => {
    const sequences = fc.array(step, { maxLength: 60, size: "max" });
    fc.assert(
      fc.property(sequences, fc.constantFrom("first", "last"), (steps, order) => {
        const book = new MapBlockBook();
        const stage = new LoadStage(book, 4);
        stage.play(steps);
        stage.finish(order);
        expect(book.size).toBe(0);
      }),
      { numRuns: scaled(400) },
    );
  });

  test("does so with the table of the core", () => {
    const sequences = fc.array(step, { maxLength: 60, size: "max" });
    fc.assert(
      fc.property(sequences, fc.constantFrom("first", "last"), (steps, order) => {
        const blocks = new BookedBlocks({ maxBlocks: 1_000 });
        const book: BookUnderTest = {
          book: (worker, list) => blocks.book(worker, list),
          settle: (list) => blocks.settle(list),
          unbook: (worker, list, waiting) => blocks.unbook(worker, list, waiting),
          sole: (worker, list) => blocks.sole(worker, list),
          waiting: (hash) => waitingFor(blocks, hash),
        };
        const stage = new LoadStage(book, 4);
        stage.play(steps);
        stage.finish(order);
        expect(blocks.size).toEqual({ blocks: 0, entries: 0 });
        blocks.dispose();
      }),
      { numRuns: scaled(60) },
    );
  });

  test("does so on all short sequences", () => {
    const alphabet: Step[] = [
      { verb: "book", worker: 0, request: requestOf(2, 1, 2, true) },
      { verb: "book", worker: 0, request: requestOf(3, 2, 1, true) },
      { verb: "endPrefill", booking: 0 },
      { verb: "endPrefill", booking: 1 },
      { verb: "addOutputBlock", booking: 0, decay: 0.3 },
      { verb: "release", booking: 0 },
      { verb: "release", booking: 1 },
      { verb: "advance", ms: 7 },
    ];
    const length = scaled(10) >= 10 ? 5 : 4;
    for (let number = 0; number < alphabet.length ** length; number++) {
      const stage = new LoadStage(new MapBlockBook(), 1);
      const steps = Array.from({ length }, (_, at) => alphabet[Math.floor(number / 8 ** at) % 8] as Step);
      stage.play(steps);
      stage.finish("first");
    }
  });
});
