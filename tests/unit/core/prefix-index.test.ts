import { describe, expect, test } from "vitest";
import { PAGE_BYTES } from "../../../src/abi.js";
import { compileCore } from "../../../src/core/compile.js";
import { DISPOSE } from "../../../src/core/dispose.js";
import { coreOfIndex, overlapOf, PrefixIndex } from "../../../src/core/prefix-index.js";
import { ENTRIES_DEFAULT, ENTRIES_MAX } from "../../../src/core/prefix-options.js";
import { WORKERS_MAX } from "../../../src/core/worker-table.js";
import {
  ArgumentRangeError,
  ArgumentTypeError,
  CorePanicError,
  DisposedError,
  MemoryLimitError,
  WorkersExhaustedError,
} from "../../../src/errors.js";

const at = (workerId: string | number | bigint, dpRank = 0) => ({ workerId, dpRank });
const junk = (value: unknown) => value as never;

describe("workers", () => {
  test('1 and 1n are one worker, and "1" is another', () => {
    const index = new PrefixIndex();
    index.store(at(1), [1n]);
    index.store(at(1n), [1n, 2n]);
    index.store(at("1"), [1n]);
    expect(index.overlap([1n, 2n])).toEqual([
      { worker: at(1), blocks: 2 },
      { worker: at("1"), blocks: 1 },
    ]);
    index.removeWorker(1n);
    expect(index.overlap([1n])).toEqual([{ worker: at("1"), blocks: 1 }]);
  });

  test("bigints that no number can name are workers of their own", () => {
    const index = new PrefixIndex();
    const large = 2n ** 53n;
    index.store(at(large), [1n]);
    index.store(at(large + 1n), [1n, 2n]);
    index.store(at(-large), [1n]);
    index.store(at(large), [1n]);
    expect(index.overlap([1n]).map(({ worker }) => worker.workerId)).toEqual([large, large + 1n, -large]);
  });

  test("ranks are holders of their own", () => {
    const index = new PrefixIndex();
    index.store(at("a", 0), [1n]);
    index.store(at("a", 7), [1n]);
    index.clear(at("a", 7));
    expect(index.overlap([1n])).toEqual([{ worker: at("a", 0), blocks: 1 }]);
  });

  test("ties come in the order of registration, which clear keeps and removeWorker ends", () => {
    const index = new PrefixIndex();
    for (const id of ["a", "b", "c"]) index.store(at(id), [1n]);
    index.clear(at("a"));
    index.removeWorker("b");
    for (const id of ["b", "a"]) index.store(at(id), [1n]);
    expect(index.overlap([1n]).map(({ worker }) => worker.workerId)).toEqual(["a", "c", "b"]);
  });

  test("an answer does not change with the object that a caller passed", () => {
    const index = new PrefixIndex();
    const worker = at("a");
    index.store(worker, [1n]);
    worker.dpRank = 5;
    expect(index.overlap([1n])).toEqual([{ worker: at("a"), blocks: 1 }]);
    expect(Object.isFrozen(index.overlap([1n])[0]?.worker)).toBe(true);
  });

  test("a store of nothing registers nobody", () => {
    const index = new PrefixIndex();
    index.store(at("a"), []);
    index.store(at("b"), [1n]);
    index.store(at("a"), [1n]);
    expect(index.overlap([1n]).map(({ worker }) => worker.workerId)).toEqual(["b", "a"]);
  });

  test(`there are at most ${WORKERS_MAX} at a time`, () => {
    const index = new PrefixIndex();
    for (let id = 0; id < WORKERS_MAX; id++) index.store(at(id), [1n]);
    expect(() => index.store(at(WORKERS_MAX), [1n])).toThrow(WorkersExhaustedError);
    expect(index.size).toEqual({ blocks: 1, entries: WORKERS_MAX });
    index.store(at(7), [2n]);
    index.removeWorker(7);
    index.store(at(WORKERS_MAX), [1n]);
    const found = index.overlap([1n]);
    expect(found).toHaveLength(WORKERS_MAX);
    expect(found.at(-1)?.worker).toEqual(at(WORKERS_MAX));
    expect(found.every(({ worker }, i) => i === WORKERS_MAX - 1 || worker.workerId === i + Number(i >= 7))).toBe(true);
  });

  test.each([
    [junk(undefined), ArgumentTypeError, "Expected a worker, with a workerId and a dpRank, got undefined."],
    [junk(null), ArgumentTypeError, "Expected a worker, with a workerId and a dpRank, got null."],
    [
      junk({ dpRank: 0 }),
      ArgumentTypeError,
      "Expected a workerId that is a string, a number or a bigint, got undefined.",
    ],
    [at(1.5), ArgumentRangeError, /whole number from .*, got 1.5\./],
    [at(Number.NaN), ArgumentRangeError, /got NaN/],
    [at(2 ** 53), ArgumentRangeError, /got 9007199254740992/],
    [at("a", -1), ArgumentRangeError, "Expected a dpRank that is a whole number, 0 or more, got -1."],
    [at("a", 0.5), ArgumentRangeError, /got 0.5/],
    [junk({ workerId: "a" }), ArgumentTypeError, "Expected a dpRank that is a number, got undefined."],
  ])("%o is none", (worker, error, message) => {
    const index = new PrefixIndex();
    for (const act of [() => index.store(worker, [1n]), () => index.remove(worker, [1n]), () => index.clear(worker)]) {
      expect(act).toThrow(error);
      expect(act).toThrow(message);
    }
    expect(index.size.entries).toBe(0);
  });

  test("removeWorker refuses what is no id", () => {
    expect(() => new PrefixIndex().removeWorker(0.5)).toThrow(ArgumentRangeError);
    expect(() => new PrefixIndex().removeWorker(junk(true))).toThrow(ArgumentTypeError);
  });
});

describe("the limit of a worker", () => {
  test.each([0, -1, 1.5, Number.NaN, 11])("is not %d where a worker may have 10 entries", (most) => {
    const index = new PrefixIndex({ maxEntriesPerWorker: 10 });
    index.store(at("a"), [1n, 2n]);
    const expected = `Expected maxEntries to be a whole number from 1 to 10, got ${most}.`;
    expect(() => index.limit(at("a"), most)).toThrow(expected);
    expect(() => index.limit(at("b"), most)).toThrow(ArgumentRangeError);
    expect(index.size.entries).toBe(2);
  });

  test("is a number, of a worker", () => {
    const index = new PrefixIndex();
    expect(() => index.limit(at("a"), junk("1"))).toThrow(ArgumentTypeError);
    expect(() => index.limit(junk("a"), 1)).toThrow(ArgumentTypeError);
    expect(() => index.limit(at("a", -1), 1)).toThrow(ArgumentRangeError);
    index.limit(at("a"), 1);
    index.limit(at("a"), ENTRIES_DEFAULT);
    expect(() => index.limit(at("a"), ENTRIES_DEFAULT + 1)).toThrow(ArgumentRangeError);
  });

  test("registers a worker: its place in answers is that of the first call", () => {
    const index = new PrefixIndex();
    index.limit(at("b"), 5);
    for (const id of ["a", "b"]) index.store(at(id), [1n]);
    expect(index.overlap([1n]).map(({ worker }) => worker.workerId)).toEqual(["b", "a"]);
  });

  test("of a new worker needs memory, and changes nothing where there is none", () => {
    const { memoryBytes } = new PrefixIndex();
    const index = new PrefixIndex({ maxMemoryBytes: memoryBytes });
    let id = 0;
    expect(() => {
      for (; ; id++) index.limit(at(id), 1);
    }).toThrow(MemoryLimitError);
    index.limit(at(id - 1), 2);
    index.removeWorker(0);
    index.limit(at(id), 1);
  });
});

describe("overlapOf", () => {
  test("says what overlap says, and names a frozen worker by the object that registered it", () => {
    const index = new PrefixIndex();
    const worker = Object.freeze(at("a"));
    index.store(worker, [1n, 2n]);
    index.store(at("b"), [1n]);
    const { workers, blocks } = overlapOf(index, [1n, 2n]);
    expect(workers).toEqual(index.overlap([1n, 2n]).map((overlap) => overlap.worker));
    expect(blocks).toEqual([2, 1]);
    expect(workers[0]).toBe(worker);
    expect(overlapOf(index, [1n]).workers[1]).toBe(workers[1]);
    expect(overlapOf(index, [])).toEqual({ workers: [], blocks: [] });
  });
});

describe("the order of an answer", () => {
  test.each([1, 2, 3, 64, 700])("holds for %i workers, however they came to their blocks", (workers) => {
    const index = new PrefixIndex();
    const chain = Array.from({ length: 50 }, (_, i) => BigInt(i + 1));
    const expected = Array.from({ length: workers }, (_, id) => ({ worker: at(id), blocks: 1 + ((id * 7_919) % 50) }));
    for (let id = 0; id < workers; id++) index.store(at(id), [0n]); // registers them in order
    for (let i = 0; i < workers; i++) {
      const { worker, blocks } = expected[(i * 1_009) % workers] as (typeof expected)[number];
      index.store(worker, chain.slice(0, blocks));
    }
    expected.sort((a, b) => b.blocks - a.blocks); // stable
    expect(index.overlap(chain)).toEqual(expected);
  });
});

describe("chains", () => {
  test("an overlap counts from the root without a gap", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [1n, 2n, 3n, 4n]);
    index.store(at("b"), [1n, 2n]);
    index.store(at("c"), [2n, 3n, 4n]);
    index.store(at("d"), [1n, 3n, 4n]);
    expect(index.overlap([1n, 2n, 3n, 4n, 5n])).toEqual([
      { worker: at("a"), blocks: 4 },
      { worker: at("b"), blocks: 2 },
      { worker: at("d"), blocks: 1 },
    ]);
    index.remove(at("a"), [2n]);
    expect(index.overlap([1n, 2n, 3n, 4n])[0]).toEqual({ worker: at("b"), blocks: 2 });
    index.store(at("a"), [2n], { parent: 1n });
    expect(index.overlap([1n, 2n, 3n, 4n])[0]).toEqual({ worker: at("a"), blocks: 4 });
  });

  test("blocks under an unknown parent count once they are rooted", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [2n, 3n], { parent: 1n });
    expect(index.overlap([1n, 2n, 3n])).toEqual([]);
    index.store(at("a"), [1n]);
    expect(index.overlap([1n, 2n, 3n])).toEqual([{ worker: at("a"), blocks: 3 }]);
  });

  test("of a chain beyond the bounds the head is kept", () => {
    for (const options of [{ maxEntries: 3 }, { maxEntries: 100, maxEntriesPerWorker: 3 }]) {
      const index = new PrefixIndex(options);
      index.store(at("a"), [9n, 8n]);
      index.store(at("a"), [1n, 2n, 3n, 4n, 5n]);
      expect(index.overlap([1n, 2n, 3n, 4n])).toEqual([{ worker: at("a"), blocks: 3 }]);
      expect(index.stats).toEqual({ evicted: 2, expired: 0 });
      index.store(at("a"), [4n, 5n], { parent: 3n });
      expect(index.overlap([1n, 2n, 3n, 4n])).toEqual([{ worker: at("a"), blocks: 3 }]);
    }
  });

  test("maxEntriesPerWorker bounds each rank, and evicts its own blocks only", () => {
    const index = new PrefixIndex({ maxEntries: 10, maxEntriesPerWorker: 2 });
    index.store(at("b"), [7n]);
    index.store(at("a", 0), [1n, 2n]);
    index.store(at("a", 1), [1n, 2n]);
    index.store(at("a", 0), [3n]);
    expect(index.overlap([7n])).toHaveLength(1);
    expect(index.overlap([1n, 2n])).toEqual([
      { worker: at("a", 1), blocks: 2 },
      { worker: at("a", 0), blocks: 1 },
    ]);
  });

  test("a use of a block is a use of its ancestors", () => {
    const index = new PrefixIndex({ maxEntries: 4 });
    index.store(at("a"), [1n, 2n]);
    index.store(at("a"), [8n]);
    index.store(at("a"), [3n], { parent: 2n });
    index.store(at("a"), [9n]);
    expect(index.overlap([8n])).toEqual([]);
    expect(index.overlap([1n, 2n, 3n])).toEqual([{ worker: at("a"), blocks: 3 }]);
  });

  test("a use of ancestors ends at the first that was used a short time ago, and keeps them behind it", () => {
    const index = new PrefixIndex({ maxEntries: 16 }); // a short time are two uses
    index.store(at("a"), [1n, 2n]);
    for (let hash = 100n; hash < 106n; hash++) index.store(at("a"), [hash]);
    index.store(at("a"), [1n]);
    index.store(at("a"), [3n], { parent: 2n });
    for (let hash = 200n; hash < 214n; hash++) index.store(at("a"), [hash]);
    expect(index.stats.evicted).toBe(7);
    expect(index.overlap([1n, 2n, 3n])).toEqual([{ worker: at("a"), blocks: 2 }]); // the leaf went, of all three
  });

  test("lists and typed arrays mean the same, and a bad hash is named before anything changes", () => {
    const index = new PrefixIndex();
    index.store(at("a"), BigUint64Array.of(1n, 2n));
    const bad = [1n, -1n];
    const cases: [() => unknown, RegExp][] = [
      [() => index.store(at("b"), bad), /hashes\[1\] .* got -1/],
      [() => index.remove(at("a"), bad), /hashes\[1\]/],
      [() => index.overlap([1n, 2n ** 64n]), /hashes\[1\]/],
      [() => index.store(at("b"), [1n], { parent: -1n }), /parent/],
      [() => index.remove(at("nobody"), bad), /hashes\[1\]/],
    ];
    for (const [act, message] of cases) {
      expect(act).toThrow(ArgumentRangeError);
      expect(act).toThrow(message);
    }
    expect(() => index.store(at("b"), [junk(1)])).toThrow(ArgumentTypeError);
    expect(() => index.store(at("b"), [1n], { parent: junk(null) })).toThrow(ArgumentTypeError);
    expect(index.overlap([1n, 2n])).toEqual([{ worker: at("a"), blocks: 2 }]);
  });

  test("a bad hash far behind in a long list is named before any block is removed", () => {
    const index = new PrefixIndex();
    const list = Array.from({ length: 5_000 }, (_, i) => BigInt(i));
    index.store(at("a"), list.slice(0, 100));
    list[4_321] = -5n;
    expect(() => index.remove(at("a"), list)).toThrow("Expected hashes[4321] to be");
    list[4_321] = junk("no");
    expect(() => index.remove(at("a"), list)).toThrow(ArgumentTypeError);
    expect(index.size.entries).toBe(100);
  });

  test("an empty chain overlaps with nobody", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [1n]);
    expect(index.overlap([])).toEqual([]);
  });
});

describe("a time to live", () => {
  test("ends after exactly that long without a store", () => {
    const index = new PrefixIndex({ ttlMs: 100 });
    index.store(at("a"), [1n, 2n], { nowMs: 1_000 });
    expect(index.overlap([1n, 2n], 1_100)).toEqual([{ worker: at("a"), blocks: 2 }]);
    expect(index.overlap([1n, 2n], 1_100.1)).toEqual([]);
    expect(index.size).toEqual({ blocks: 0, entries: 0 });
    expect(index.stats).toEqual({ evicted: 0, expired: 2 });
  });

  test("starts anew for a block and its ancestors with a store under them", () => {
    const index = new PrefixIndex({ ttlMs: 100 });
    index.store(at("a"), [1n, 2n], { nowMs: 0 });
    index.store(at("a"), [3n], { nowMs: 90, parent: 2n });
    expect(index.overlap([1n, 2n, 3n], 150)).toEqual([{ worker: at("a"), blocks: 3 }]);
  });

  test("starts anew to the millisecond", () => {
    const index = new PrefixIndex({ ttlMs: 100 });
    index.store(at("a"), [1n, 2n], { nowMs: 0 });
    index.store(at("a"), [3n], { nowMs: 1, parent: 2n });
    expect(index.overlap([1n, 2n, 3n], 101)).toEqual([{ worker: at("a"), blocks: 3 }]);
    expect(index.overlap([1n, 2n, 3n], 101.5)).toEqual([]);
  });

  test("does not go back with the clock", () => {
    const index = new PrefixIndex({ ttlMs: 100 });
    index.store(at("a"), [1n], { nowMs: 1_000 });
    index.store(at("b"), [1n], { nowMs: 0 });
    expect(index.overlap([1n], 1_050)).toHaveLength(2);
  });

  test("needs the time, as a number", () => {
    const index = new PrefixIndex({ ttlMs: 100 });
    expect(() => index.store(at("a"), [1n])).toThrow(ArgumentTypeError);
    expect(() => index.overlap([1n])).toThrow(
      "Expected nowMs to be a number of milliseconds, as the index has a ttlMs",
    );
    for (const nowMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => index.overlap([1n], nowMs)).toThrow(ArgumentRangeError);
      expect(() => index.store(at("a"), [1n], { nowMs })).toThrow(ArgumentRangeError);
    }
    expect(() => new PrefixIndex().overlap([1n], junk("now"))).toThrow(ArgumentTypeError);
    expect(index.size.entries).toBe(0);
  });
});

describe("bounds", () => {
  test.each(["maxEntries", "maxEntriesPerWorker"])("%s is a whole number in its range", (what) => {
    for (const bound of [0, -1, 1.5, Number.NaN, ENTRIES_MAX + 1]) {
      expect(() => new PrefixIndex({ [what]: bound })).toThrow(ArgumentRangeError);
    }
    expect(() => new PrefixIndex({ [what]: junk("1") })).toThrow(ArgumentTypeError);
    for (const bound of [1, ENTRIES_MAX]) new PrefixIndex({ [what]: bound }).dispose();
  });

  test("ttlMs is a number above 0", () => {
    for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => new PrefixIndex({ ttlMs })).toThrow(ArgumentRangeError);
    }
    expect(() => new PrefixIndex({ ttlMs: junk(5n) })).toThrow(ArgumentTypeError);
  });

  test("a full index has all its entries, and one more store evicts one", () => {
    const index = new PrefixIndex({ maxEntries: 300 });
    for (let hash = 0n; hash < 300n; hash++) index.store(at("a"), [hash]);
    expect(index.size).toEqual({ blocks: 300, entries: 300 });
    expect(index.stats.evicted).toBe(0);
    index.store(at("a"), [300n]);
    expect(index.size).toEqual({ blocks: 300, entries: 300 });
    expect(index.stats.evicted).toBe(1);
    expect(index.overlap([0n])).toEqual([]);
  });

  test("every bound has room for as many blocks, whatever the number of workers", () => {
    for (let maxEntries = 300; maxEntries < 308; maxEntries++) {
      for (const workers of [1, 2, 3]) {
        const index = new PrefixIndex({ maxEntries });
        for (let hash = 0; hash < 2 * maxEntries; hash++) index.store(at(hash % workers), [BigInt(hash)]);
        expect(index.size).toEqual({ blocks: maxEntries, entries: maxEntries });
      }
    }
  });

  test("there is room for a new worker and its block at every size", () => {
    for (const others of [0, 1, 2]) {
      const index = new PrefixIndex();
      for (let hash = 0; hash < others; hash++) index.store(at("other"), [BigInt(hash)]);
      for (let id = 10; id < 800; id++) index.store(at(id), [BigInt(id)]);
      expect(index.size.entries).toBe(790 + others);
    }
  });

  test("a full index grows no more, however long a chain is stored", () => {
    const index = new PrefixIndex({ maxEntries: 1_000 });
    for (let hash = 0n; hash < 1_000n; hash++) index.store(at("a"), [hash]);
    index.overlap(new BigUint64Array(4_000)); // the page may grow for a long batch
    const bytes = index.memoryBytes;
    for (let from = 2_000; from < 9_000; from += 1_000) {
      index.store(
        at("a"),
        BigUint64Array.from({ length: 4_000 }, (_, i) => BigInt(from + i)),
      );
    }
    expect(index.memoryBytes).toBe(bytes);
  });

  test("an index starts in a page or two, and refuses less than it needs", () => {
    expect(new PrefixIndex().memoryBytes).toBeLessThanOrEqual(2 * PAGE_BYTES);
    expect(() => new PrefixIndex({ maxMemoryBytes: PAGE_BYTES - 1 })).toThrow(ArgumentRangeError);
    const index = new PrefixIndex({ maxMemoryBytes: PAGE_BYTES });
    const store = () =>
      index.store(
        at("a"),
        BigUint64Array.from({ length: 2_000 }, (_, i) => BigInt(i)),
      );
    expect(store).toThrow(MemoryLimitError);
    expect(index.size.entries).toBe(0);
  });
});

describe("an index", () => {
  test("is made of a module that a caller compiled", async () => {
    const index = new PrefixIndex({ module: await compileCore() });
    index.store(at("a"), [1n]);
    expect(index.size).toEqual({ blocks: 1, entries: 1 });
  });

  test("that was disposed of answers nothing", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [1n]);
    index[DISPOSE]();
    index.dispose();
    for (const act of [
      () => index.store(at("a"), [1n]),
      () => index.remove(at("a"), [1n]),
      () => index.clear(at("a")),
      () => index.removeWorker("a"),
      () => index.overlap([1n]),
      () => index.size,
      () => index.stats,
      () => index.memoryBytes,
    ]) {
      expect(act).toThrow(DisposedError);
    }
  });

  test("whose core has stopped is given up, with the reason", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [1n]);
    const core = coreOfIndex(index);
    new Uint8Array(core.exports.memory.buffer, 4_096, 400).fill(0xff);
    expect(() => index.clear(at("a"))).toThrow(CorePanicError);
    expect(() => index.size).toThrow(CorePanicError);
  });
});
