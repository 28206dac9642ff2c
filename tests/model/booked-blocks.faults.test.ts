import { describe, expect, test } from "vitest";
import { PAGE_BYTES } from "../../src/abi.js";
import { BookedBlocks } from "../../src/core/booked-blocks.js";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { askPotential, type BookedCall, BookedWorld, failBookedGrowth } from "./booked-blocks-world.js";

const worker = (workerId: number) => ({ workerId, dpRank: 0 });
const chain = (from: number, length: number) => Array.from({ length }, (_, i) => BigInt(from + i));
const SHARED = chain(0, 2);

interface Booking {
  readonly worker: WorkerWithDpRank;
  readonly list: readonly bigint[];
}

// Grows the records by many workers and by many blocks.
const bookings: readonly Booking[] = [
  ...Array.from({ length: 130 }, (_, id) => ({ worker: worker(id), list: SHARED })),
  ...Array.from({ length: 5 }, (_, i) => ({ worker: worker(i), list: chain(1_000 * (i + 1), 500) })),
];

// Grows the page, by a long answer and by a long list.
const asks: readonly BookedCall[] = [
  { text: "potential that all have a share in", act: (blocks) => askPotential(blocks, chain(0, 200), 1) },
  { text: "potential of a long list", act: (blocks) => askPotential(blocks, chain(1_000, 3_000), 1) },
];

/** Plays the scenario, within so many bytes or with the k-th growth refused. */
function play(maxMemoryBytes: number | undefined, k = 0): { limited: readonly string[]; pages: number } {
  const blocks = new BookedBlocks(maxMemoryBytes === undefined ? {} : { maxMemoryBytes });
  const world = new BookedWorld(blocks);
  failBookedGrowth(blocks, k);
  const made = bookings.filter((booking, id) => {
    const call = {
      text: `book ${id}`,
      act: (to: { book: BookedBlocks["book"] }) => to.book(booking.worker, booking.list),
    };
    return meets(world, call, k);
  });
  for (const ask of asks) meets(world, ask, k);
  world.compare([0n, 1_000n, 1_499n, 5_250n]);
  const settled = world.limited.length;
  for (const { list } of made) world.call({ text: "settle", act: (to) => to.settle(list) });
  for (const booking of made) {
    world.call({ text: "unbook", act: (to) => to.unbook(booking.worker, booking.list, false) });
  }
  expect(world.limited).toHaveLength(settled); // what makes room needs none
  expect(blocks.size).toEqual({ blocks: 0, entries: 0 });
  return { limited: world.limited, pages: blocks.memoryBytes / PAGE_BYTES };
}

/** Makes a call, and once more where it meets a limit: a growth is refused once, a limit stands. Returns whether it was made. */
function meets(world: BookedWorld, call: BookedCall, k: number): boolean {
  const before = world.limited.length;
  world.call(call);
  if (world.limited.length === before) return true;
  world.call(call);
  expect(world.limited.length - before).toBe(k > 0 ? 1 : 2);
  return k > 0;
}

describe("a limit of memory refuses single calls, changes nothing and leaves the table usable", () => {
  const enough = play(undefined).pages;

  for (let pages = 1; pages < enough; pages++) {
    test(`of ${pages} pages, where ${enough} would do`, () => {
      const { limited, pages: used } = play(pages * PAGE_BYTES);
      expect(limited).not.toEqual([]);
      expect(used).toBeLessThanOrEqual(pages);
    });
  }

  test(`of ${enough} pages refuses nothing`, () => {
    expect(play(enough * PAGE_BYTES).limited).toEqual([]);
  });
});

test("a growth that the runtime refuses changes nothing, and the next one is granted", () => {
  const checked = failBookedGrowth(new BookedBlocks(), 0);
  let k = 1;
  while (play(undefined, k).limited.length > 0) k++;
  const growths = k - 1;
  if (checked) expect(growths).toBeGreaterThanOrEqual(4);
  else expect(growths).toBe(0); // the shipped core has no way to let memory fail
});
