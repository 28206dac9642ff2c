import { describe, expect, test } from "vitest";
import { PAGE_BYTES } from "../../../src/abi.js";
import { BookedBlocks, coreOfBooked } from "../../../src/core/booked-blocks.js";
import { compileCore } from "../../../src/core/compile.js";
import { DISPOSE } from "../../../src/core/dispose.js";
import { ENTRIES_MAX } from "../../../src/core/prefix-options.js";
import {
  ArgumentRangeError,
  ArgumentTypeError,
  CorePanicError,
  DisposedError,
  MemoryLimitError,
  NotBookedError,
} from "../../../src/errors.js";

const at = (workerId: string | number, dpRank = 0) => ({ workerId, dpRank });
const junk = (value: unknown) => value as never;

/** Every way to use a table. */
const uses: readonly [name: string, use: (blocks: BookedBlocks) => unknown][] = [
  ["size", (blocks) => blocks.size],
  ["memoryBytes", (blocks) => blocks.memoryBytes],
  ["book", (blocks) => blocks.book(at("a"), [1n])],
  ["settle", (blocks) => blocks.settle([])],
  ["unbook", (blocks) => blocks.unbook(at("a"), [], true)],
  ["sole", (blocks) => blocks.sole(at("a"), [])],
  ["potential", (blocks) => blocks.potential([], 1)],
];

describe("options", () => {
  test.each([0, 0.5, -1, ENTRIES_MAX + 1, Number.NaN])("maxBlocks %d is out of range", (maxBlocks) => {
    expect(() => new BookedBlocks({ maxBlocks })).toThrow(ArgumentRangeError);
  });

  test("maxBlocks is a number, from 1 to 16,777,215", () => {
    expect(() => new BookedBlocks({ maxBlocks: junk("1") })).toThrow(ArgumentTypeError);
    expect(new BookedBlocks({ maxBlocks: ENTRIES_MAX }).book(at("a"), [1n])).toBe(1);
  });

  test("one page of memory holds no table, two do", () => {
    expect(() => new BookedBlocks({ maxMemoryBytes: PAGE_BYTES - 1 })).toThrow(ArgumentRangeError);
    const { memoryBytes } = new BookedBlocks();
    expect(new BookedBlocks({ maxMemoryBytes: memoryBytes }).memoryBytes).toBe(memoryBytes);
  });

  test("a compiled module is taken", async () => {
    expect(new BookedBlocks({ module: await compileCore() }).book(at("a"), [1n])).toBe(1);
  });
});

describe("arguments", () => {
  const calls: readonly [
    string,
    (blocks: BookedBlocks) => unknown,
    typeof ArgumentTypeError | typeof ArgumentRangeError,
  ][] = [
    ["book of no list", (blocks) => blocks.book(at("a"), junk(1n)), ArgumentTypeError],
    ["book of numbers", (blocks) => blocks.book(at("a"), [2n, junk(1)]), ArgumentTypeError],
    ["book of a negative hash", (blocks) => blocks.book(at("a"), [-1n]), ArgumentRangeError],
    ["book on nobody", (blocks) => blocks.book(junk(null), [1n]), ArgumentTypeError],
    ["book on half a worker", (blocks) => blocks.book(at(0.5), [1n]), ArgumentRangeError],
    ["book on half a rank", (blocks) => blocks.book(at(1, 0.5), [1n]), ArgumentRangeError],
    ["settle of strings", (blocks) => blocks.settle([junk("1")]), ArgumentTypeError],
    ["unbook without waiting", (blocks) => blocks.unbook(at("a"), [1n], junk(undefined)), ArgumentTypeError],
    ["unbook of numbers", (blocks) => blocks.unbook(at("a"), [junk(1)], true), ArgumentTypeError],
    ["sole of nothing", (blocks) => blocks.sole(at("a"), junk(undefined)), ArgumentTypeError],
    ["potential of numbers", (blocks) => blocks.potential([junk(1)], 1), ArgumentTypeError],
    ["potential without hot", (blocks) => blocks.potential([1n], junk(undefined)), ArgumentTypeError],
    ["potential with hot 0", (blocks) => blocks.potential([1n], 0), ArgumentRangeError],
    ["potential with hot NaN", (blocks) => blocks.potential([1n], Number.NaN), ArgumentRangeError],
  ];

  test.each(calls)("%s is refused and changes nothing", (_, call, error) => {
    const blocks = new BookedBlocks();
    blocks.book(at("a"), [1n]);
    expect(() => call(blocks)).toThrow(error);
    expect(blocks.size).toEqual({ blocks: 1, entries: 1 });
    expect(blocks.potential([1n], 1)).toEqual({ workers: [at("a")], blocks: [1], hotBlocks: 1 });
  });

  test("an empty list does nothing, whoever it is for", () => {
    const blocks = new BookedBlocks();
    expect(blocks.book(at("a"), [])).toBe(0);
    expect(blocks.unbook(at("a"), new BigUint64Array(0), true)).toBe(0);
    expect(blocks.sole(at("a"), [])).toBe(0);
    blocks.settle([]);
    expect(blocks.potential([], 1)).toEqual({ workers: [], blocks: [], hotBlocks: 0 });
  });
});

describe("what is not booked", () => {
  function booked() {
    const blocks = new BookedBlocks();
    blocks.book(at("a"), [1n, 2n]);
    blocks.book(at("b"), [3n]);
    blocks.settle([2n]);
    return blocks;
  }

  test.each<[string, (blocks: BookedBlocks) => unknown, bigint, number]>([
    ["settle of a stranger", (blocks) => blocks.settle([1n, 9n]), 9n, 1],
    ["settle of what has settled", (blocks) => blocks.settle([1n, 2n]), 2n, 1],
    ["settle twice in a list", (blocks) => blocks.settle([1n, 1n]), 1n, 1],
    ["unbook of another's", (blocks) => blocks.unbook(at("a"), [1n, 3n], true), 3n, 1],
    ["unbook twice in a list", (blocks) => blocks.unbook(at("a"), [1n, 1n], true), 1n, 1],
    ["unbook on a stranger", (blocks) => blocks.unbook(at("c"), [1n], true), 1n, 0],
    ["unbook as waiting of what has settled", (blocks) => blocks.unbook(at("a"), [1n, 2n], true), 2n, 1],
    ["unbook as settled of what waits", (blocks) => blocks.unbook(at("a"), [2n, 1n], false), 1n, 1],
    ["sole of another's", (blocks) => blocks.sole(at("a"), [1n, 3n]), 3n, 1],
    ["sole on a stranger", (blocks) => blocks.sole(at("c"), [1n]), 1n, 0],
  ])("%s is refused whole, and the error names it", (_, call, hash, index) => {
    const blocks = booked();
    expect(() => call(blocks)).toThrow(NotBookedError);
    expect(() => call(blocks)).toThrow(expect.objectContaining({ code: "KVROUTE_NOT_BOOKED", hash, index }));
    expect(blocks.size).toEqual({ blocks: 3, entries: 3 });
    expect(blocks.potential([1n, 2n], 1).hotBlocks).toBe(1);
    expect(blocks.unbook(at("a"), [1n], true) + blocks.unbook(at("a"), [2n], false)).toBe(2);
    expect(blocks.unbook(at("b"), [3n], true)).toBe(1);
  });
});

describe("the end", () => {
  test.each(uses)("a table that was disposed of refuses %s", (_, use) => {
    const blocks = new BookedBlocks();
    blocks.dispose();
    blocks[DISPOSE]();
    expect(() => use(blocks)).toThrow(DisposedError);
  });

  /** Trips an assertion of the core behind the facade's back. */
  function broken() {
    const blocks = new BookedBlocks();
    blocks.book(at("a"), [1n]);
    Object.defineProperty(coreOfBooked(blocks), "exports", { value: trapping(blocks) });
    return blocks;
  }

  const trapping = (blocks: BookedBlocks) => {
    const { exports } = coreOfBooked(blocks);
    const trap = () => exports.countSole(2 ** 30, 1); // no holder has that number
    return { ...exports, book: trap, settleAll: trap, countSole: trap, potential: trap, makeScratch: trap };
  };

  test.each<[string, (blocks: BookedBlocks) => unknown]>([
    ["book", (blocks) => blocks.book(at("a"), [1n])],
    ["settle", (blocks) => blocks.settle([1n])],
    ["unbook", (blocks) => blocks.unbook(at("a"), [1n], true)],
    ["sole", (blocks) => blocks.sole(at("a"), [1n])],
    ["potential", (blocks) => blocks.potential([1n], 1)],
    ["a list that needs room", (blocks) => blocks.potential(new BigUint64Array(5_000), 1)],
  ])("a trap in %s ends the table, with one error for good", (_, call) => {
    const blocks = broken();
    let first: unknown;
    try {
      call(blocks);
    } catch (error) {
      first = error;
    }
    expect(first).toBeInstanceOf(CorePanicError);
    for (const [, use] of uses) expect(() => use(blocks)).toThrow(first as Error);
    blocks.dispose();
    expect(() => blocks.size).toThrow(first as Error);
  });

  test("a limit of memory is told with both values", () => {
    const { memoryBytes } = new BookedBlocks();
    const blocks = new BookedBlocks({ maxMemoryBytes: memoryBytes });
    const long = BigUint64Array.from({ length: 2_000 }, (_, i) => BigInt(i));
    expect(() => blocks.book(at("a"), long)).toThrow(MemoryLimitError);
    expect(blocks.size).toEqual({ blocks: 0, entries: 0 });
  });
});
