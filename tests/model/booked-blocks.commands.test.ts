import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BookedBlocks } from "../../src/core/booked-blocks.js";
import type { WorkerId, WorkerWithDpRank } from "../../src/core/keys.js";
import { scaled } from "../support/scale.js";
import { type BookedOptions, nameOf } from "./booked-blocks-naive.js";
import { askPotential, type BookedCall, BookedWorld } from "./booked-blocks-world.js";

/** What the calls of a walk may name. */
interface Space {
  readonly options: fc.Arbitrary<BookedOptions>;
  readonly hashes: readonly bigint[];
  readonly ids: readonly WorkerId[];
  readonly ranks: number;
}

/** A booking that a walk has made. */
interface Booking {
  readonly worker: WorkerWithDpRank;
  readonly list: readonly bigint[];
  waits: boolean;
}

/** One step of a walk, which may know the bookings made before. */
type Step = (world: BookedWorld, bookings: Booking[]) => void;

/** Makes random calls on a table and on the naive one side by side. Counts the calls that were refused, by code. */
function walk(space: Space, runs: number, stepsMax: number): Map<string, number> {
  const refused = new Map<string, number>();
  const steps = fc.array(stepOf(space, refused), { maxLength: stepsMax, size: "max" });
  fc.assert(
    fc.property(space.options, steps, (options, list) => {
      const world = new BookedWorld(new BookedBlocks(options), options);
      const bookings: Booking[] = [];
      for (const step of list) step(world, bookings);
      world.compare(space.hashes);
      world.drain();
    }),
    { numRuns: runs },
  );
  return refused;
}

function stepOf(space: Space, refused: Map<string, number>): fc.Arbitrary<Step> {
  const worker = fc.record({ workerId: fc.constantFrom(...space.ids), dpRank: fc.nat(space.ranks - 1) });
  const chain = fc.nat(space.hashes.length).map((length) => space.hashes.slice(0, length));
  const some = fc.array(fc.constantFrom(...space.hashes), { maxLength: 6 });
  const list = fc.oneof(chain, some);
  const call = (world: BookedWorld, made: BookedCall) => {
    const outcome = world.call(made);
    if ("code" in outcome) refused.set(outcome.code, (refused.get(outcome.code) ?? 0) + 1);
    return outcome;
  };
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(worker, list, fc.boolean()).map(
        ([who, hashes, typed]): Step =>
          (world, bookings) => {
            const outcome = call(world, book(who, typed ? BigUint64Array.from(hashes) : hashes));
            if ("value" in outcome) bookings.push({ worker: who, list: hashes, waits: true });
          },
      ),
    },
    {
      weight: 3,
      arbitrary: fc.nat(20).map(
        (pick): Step =>
          (world, bookings) => {
            const booking = bookings[pick % Math.max(1, bookings.length)];
            if (booking === undefined || !booking.waits) return;
            booking.waits = false;
            call(world, settle(booking.list));
          },
      ),
    },
    {
      weight: 4,
      arbitrary: fc.nat(20).map(
        (pick): Step =>
          (world, bookings) => {
            const [booking] = bookings.splice(pick % Math.max(1, bookings.length), 1);
            if (booking !== undefined) call(world, unbook(booking.worker, booking.list, booking.waits));
          },
      ),
    },
    // What the callers of the table promise not to do, and what asks.
    {
      weight: 1,
      arbitrary: some.map(
        (hashes): Step =>
          (world) =>
            call(world, settle(hashes)),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(worker, some, fc.boolean()).map(
        ([who, hashes, waits]): Step =>
          (world) =>
            call(world, unbook(who, hashes, waits)),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(worker, list).map(
        ([who, hashes]): Step =>
          (world) =>
            call(world, { text: `sole(${nameOf(who)}, [${hashes}])`, act: (blocks) => blocks.sole(who, hashes) }),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(list, fc.constantFrom(1, 2, 3, 2.5, Number.POSITIVE_INFINITY)).map(
        ([hashes, hot]): Step =>
          (world) =>
            call(world, { text: `potential([${hashes}], ${hot})`, act: (blocks) => askPotential(blocks, hashes, hot) }),
      ),
    },
  );
}

function book(worker: WorkerWithDpRank, hashes: readonly bigint[] | BigUint64Array): BookedCall {
  return { text: `book(${nameOf(worker)}, [${hashes}])`, act: (blocks) => blocks.book(worker, hashes) };
}

function settle(hashes: readonly bigint[]): BookedCall {
  return { text: `settle([${hashes}])`, act: (blocks) => blocks.settle(hashes) };
}

function unbook(worker: WorkerWithDpRank, hashes: readonly bigint[], waits: boolean): BookedCall {
  const text = `unbook(${nameOf(worker)}, [${hashes}], ${waits})`;
  return { text, act: (blocks) => blocks.unbook(worker, hashes, waits) };
}

const few: Space = {
  options: fc.constant({}),
  hashes: [1n, 2n, 3n, 4n, 5n, 6n],
  ids: [1, 1n, "1", 2n ** 60n],
  ranks: 2,
};

describe("booked blocks beside the naive ones do the same, and nothing is left when the last booking ends", () => {
  test("with few blocks and workers", () => {
    const refused = walk(few, scaled(400), 60);
    expect(refused.get("KVROUTE_NOT_BOOKED")).toBeGreaterThan(0);
  });

  test("with few entries", () => {
    const options = fc.integer({ min: 1, max: 12 }).map((maxBlocks) => ({ maxBlocks }));
    const refused = walk({ ...few, options }, scaled(400), 60);
    expect(refused.get("KVROUTE_BLOCKS_EXHAUSTED")).toBeGreaterThan(0);
  });

  test("with hashes at the borders of their bits", () => {
    const hashes = [0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n - 2n];
    walk({ ...few, hashes }, scaled(150), 60);
  });

  test("while the table grows, with many workers", () => {
    const ids = Array.from({ length: 60 }, (_, id) => id);
    const hashes = Array.from({ length: 40 }, (_, i) => (BigInt(i) * 0x9e37_79b9_7f4a_7c15n) & (2n ** 64n - 1n));
    walk({ ...few, ids, hashes }, scaled(20), 120);
  });
});
