import { describe, expect, test } from "vitest";
import { BookedBlocks } from "../../src/core/booked-blocks.js";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { BlocksExhaustedError } from "../../src/errors.js";
import { scaled } from "../support/scale.js";
import { verifyBooked } from "./booked-blocks-world.js";

const at = (workerId: string | number, dpRank = 0): WorkerWithDpRank => Object.freeze({ workerId, dpRank });

describe("sharing", () => {
  test("a block counts once on a worker, however many bookings share it, and goes with the last", () => {
    const blocks = new BookedBlocks();
    expect(blocks.book(at("a"), [1n, 2n, 3n])).toBe(3);
    expect(blocks.book(at("a"), [1n, 2n, 4n])).toBe(1);
    expect(blocks.sole(at("a"), [1n, 2n, 4n])).toBe(1);
    expect(blocks.unbook(at("a"), [1n, 2n, 3n], true)).toBe(1);
    expect(blocks.unbook(at("a"), [1n, 2n, 4n], true)).toBe(3);
    expect(blocks.size).toEqual({ blocks: 0, entries: 0 });
  });

  test("workers and ranks count for themselves, and wait together", () => {
    const blocks = new BookedBlocks();
    for (const worker of [at("a"), at("a", 1), at("b")]) expect(blocks.book(worker, [1n, 2n])).toBe(2);
    expect(blocks.size).toEqual({ blocks: 2, entries: 6 });
    expect(blocks.potential([1n, 2n, 3n], 3).hotBlocks).toBe(2);
    blocks.settle([1n, 2n]);
    expect(blocks.potential([1n, 2n], 3).hotBlocks).toBe(0);
    expect(blocks.potential([1n, 2n], 2).hotBlocks).toBe(2);
  });

  test("a potential counts right where the blocks of a worker are no leading run", () => {
    const blocks = new BookedBlocks();
    const all = Array.from({ length: 50 }, (_, i) => BigInt(i));
    blocks.book(
      at("even"),
      all.filter((hash) => hash % 2n === 0n),
    );
    blocks.book(at("tail"), all.slice(40));
    blocks.book(at("all"), all);
    const { workers, blocks: counts } = blocks.potential([...all, 99n, ...all], 1);
    const found = new Map(workers.map(({ workerId }, i) => [workerId, counts[i]]));
    expect(found).toEqual(
      new Map([
        ["even", 50],
        ["tail", 20],
        ["all", 100],
      ]),
    );
  });
});

describe("the object of a worker", () => {
  test("comes back by identity, in every answer, if it is frozen", () => {
    const blocks = new BookedBlocks();
    const worker = at("a");
    for (let round = 0; round < 2; round++) {
      blocks.book({ workerId: "other", dpRank: 0 }, [2n]);
      blocks.book(worker, [1n]);
      expect(blocks.potential([1n], 1).workers[0]).toBe(worker);
      blocks.unbook({ workerId: "a", dpRank: 0 }, [1n], true);
      expect(blocks.potential([1n], 1).workers).toEqual([]);
    }
  });

  test("is a frozen copy if it may change", () => {
    class Changing {
      calls = 0;
      readonly count = { calls: 0 };
      readonly workerId = "a";
      get dpRank() {
        return this.count.calls++;
      }
    }
    const blocks = new BookedBlocks();
    blocks.book(Object.freeze(new Changing()), [1n]);
    const [first] = blocks.potential([1n], 1).workers;
    expect(Object.getOwnPropertyDescriptor(first, "dpRank")?.value).toBeTypeOf("number");
    expect(Object.isFrozen(first)).toBe(true);
  });
});

describe("bounds", () => {
  test("a booking that would pass the limit is refused whole, and one that just fits is not", () => {
    const blocks = new BookedBlocks({ maxBlocks: 4 });
    blocks.book(at("a"), [1n, 2n]);
    expect(() => blocks.book(at("b"), [1n, 2n, 3n])).toThrow(BlocksExhaustedError);
    expect(blocks.size).toEqual({ blocks: 2, entries: 2 });
    expect(blocks.potential([1n], 2).hotBlocks).toBe(0);
    expect(blocks.book(at("b"), [1n, 2n, 1n, 2n])).toBe(2);
    expect(blocks.book(at("a"), [2n, 1n])).toBe(0);
    expect(() => blocks.book(at("a"), [3n])).toThrow(BlocksExhaustedError);
    verifyBooked(blocks);
  });
});

describe("churn", () => {
  // 30,000 in the normal suite; KVROUTE_TEST_SCALE=100 makes it three million.
  const bookings = scaled(30_000);

  test(`${bookings.toLocaleString("en")} bookings on workers that come and go end with the memory they began with`, () => {
    const blocks = new BookedBlocks();
    churn(blocks, Math.ceil(bookings / 4));
    const bytes = blocks.memoryBytes;
    churn(blocks, bookings);
    expect(blocks.memoryBytes).toBe(bytes);
    verifyBooked(blocks);
  });

  /** Keeps 64 bookings under way, each on a worker of its own that is never seen again. */
  function churn(blocks: BookedBlocks, count: number): void {
    const chainOf = (booking: number) =>
      BigUint64Array.from({ length: 16 }, (_, i) => BigInt(i < 8 ? i : booking * 16 + i));
    for (let booking = 0; booking < count + 64; booking++) {
      if (booking < count) blocks.book(at(`w${booking}`), chainOf(booking));
      const ended = booking - 64;
      if (ended < 0) continue;
      if (ended % 2 === 0) blocks.settle(chainOf(ended));
      blocks.unbook(at(`w${ended}`), chainOf(ended), ended % 2 !== 0);
    }
    expect(blocks.size).toEqual({ blocks: 0, entries: 0 });
    expect(blocks.potential(chainOf(0), 1)).toEqual({ workers: [], blocks: [], hotBlocks: 0 });
  }
});
