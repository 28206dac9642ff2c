import { describe, expect, test } from "vitest";
import { ArgumentRangeError, ArgumentTypeError } from "../../src/errors.js";
import { insideOf, type PendingSelection, SelectionCache } from "../../src/selection/cache.js";
import { pending, selectionCache } from "../model/selection-cache-subject.js";

const home = { modelName: "model", routingGroup: "default" };
const nameless = { modelName: "", routingGroup: "" };

/** What JavaScript lets a caller pass. */
const wrong = <T>(value: unknown) => value as T;

describe("the options", () => {
  test("are 120 s, 4,096 entries and 256 MiB by default", () => {
    const cache = new SelectionCache();
    for (let at = 0; at <= 4_096; at++) cache.insert(`${at}`, pending(home, 0), 0);
    expect([cache.size, cache.peek(home, "0", 0), cache.peek(home, "1", 0)?.generation]).toEqual([4_096, null, 1]);
    expect([cache.peek(home, "1", 120_000)?.generation, cache.peek(home, "1", 120_001)]).toEqual([1, null]);
    const sequenceHashes = new BigUint64Array(2 ** 25);
    cache.insert("", { ...pending(nameless, 0), sequenceHashes }, 0);
    expect([cache.size, cache.totalBytes]).toEqual([1, 2 ** 28]);
    cache.insert("a", { ...pending(nameless, 0), sequenceHashes }, 0);
    expect([cache.size, cache.totalBytes]).toEqual([0, 0]);
  });

  test("may be left undefined one by one, and may be infinite", () => {
    const cache = new SelectionCache({ ttlMs: undefined, maxEntries: Infinity, maxBytes: undefined });
    for (let at = 0; at <= 4_096; at++) cache.insert(`${at}`, pending(home, 0), 0);
    expect(cache.size).toBe(4_097);
    const immortal = new SelectionCache({ ttlMs: Infinity });
    immortal.insert("a", pending(home, 0), -1e308);
    expect(immortal.peek(home, "a", 1e308)?.generation).toBe(0);
  });

  test("are an object", () => {
    expect(() => new SelectionCache(wrong(null))).toThrow(
      new ArgumentTypeError("Expected options to be an object, got null."),
    );
  });

  test.each(["ttlMs", "maxEntries", "maxBytes"])("refuse a %s that is no bound", (name) => {
    expect(() => new SelectionCache({ [name]: -1 })).toThrow(
      new ArgumentRangeError(`Expected ${name} to be 0 or more, got -1.`),
    );
    expect(() => new SelectionCache({ [name]: Number.NaN })).toThrow(ArgumentRangeError);
    expect(() => new SelectionCache({ [name]: wrong<number>("1") })).toThrow(
      new ArgumentTypeError(`Expected ${name} to be a number, got the string "1".`),
    );
    expect(() => new SelectionCache({ [name]: wrong<number>(null) })).toThrow(ArgumentTypeError);
  });
});

describe("an argument of the wrong type or out of range is refused, and nothing changes", () => {
  const calls: Record<string, [call: (cache: SelectionCache) => unknown, error: Error]> = {
    "an id that is a number": [
      (cache) => cache.insert(wrong(3), pending(home, 0), 99),
      new ArgumentTypeError("Expected selectionId to be a string, got the number 3."),
    ],
    "no selection": [
      (cache) => cache.insert("a", wrong(null), 99),
      new ArgumentTypeError("Expected selection to be an object, got null."),
    ],
    "a selection without a partition": [
      (cache) => cache.insert("a", pending(wrong(undefined), 0), 99),
      new ArgumentTypeError("Expected partition to be an object, got undefined."),
    ],
    "a partition without a model": [
      (cache) => cache.insert("a", pending(wrong({ routingGroup: "g" }), 0), 99),
      new ArgumentTypeError("Expected partition.modelName to be a string, got undefined."),
    ],
    "a partition without a group": [
      (cache) => cache.insert("a", pending(wrong({ modelName: "m" }), 0), 99),
      new ArgumentTypeError("Expected partition.routingGroup to be a string, got undefined."),
    ],
    "hashes in a list": [
      (cache) => cache.insert("a", pending(home, 0, { sequenceHashes: wrong([1n]) }), 99),
      new ArgumentTypeError("Expected sequenceHashes to be a BigUint64Array, got an object of Array."),
    ],
    "hashes of another array": [
      (cache) => cache.insert("a", pending(home, 0, { sequenceHashes: wrong(new BigInt64Array(1)) }), 99),
      new ArgumentTypeError("Expected sequenceHashes to be a BigUint64Array, got an object of BigInt64Array."),
    ],
    "an adapter that is null": [
      (cache) => cache.insert("a", pending(home, 0, { loraName: wrong(null) }), 99),
      new ArgumentTypeError("Expected loraName to be a string, got null."),
    ],
    "a time that is missing": [
      (cache) => cache.insert("a", pending(home, 0), wrong(undefined)),
      new ArgumentTypeError("Expected nowMs to be a number, got undefined."),
    ],
    "a time that is NaN": [
      (cache) => cache.insert("a", pending(home, 0), Number.NaN, 0),
      new ArgumentRangeError("Expected nowMs to be a finite number of milliseconds, got NaN."),
    ],
    "an anchor that is infinite": [
      (cache) => cache.insert("a", pending(home, 0), 99, Infinity),
      new ArgumentRangeError("Expected insertedAtMs to be a finite number of milliseconds, got Infinity."),
    ],
    "an anchor that is a bigint": [
      (cache) => cache.insert("a", pending(home, 0), 99, wrong(1n)),
      new ArgumentTypeError("Expected insertedAtMs to be a number, got the bigint 1."),
    ],
    "a peek without a time": [
      (cache) => cache.peek(home, "a", wrong(undefined)),
      new ArgumentTypeError("Expected nowMs to be a number, got undefined."),
    ],
    "a peek without a partition": [
      (cache) => cache.peek(wrong("home"), "a", 0),
      new ArgumentTypeError('Expected partition to be an object, got the string "home".'),
    ],
    "a peek without an id": [
      (cache) => cache.peek(home, wrong(undefined), 0),
      new ArgumentTypeError("Expected selectionId to be a string, got undefined."),
    ],
    "a removal without a generation": [
      (cache) => cache.remove(home, "a", wrong(undefined)),
      new ArgumentTypeError("Expected generation to be a number, got undefined."),
    ],
    "a discard without an id": [
      (cache) => cache.discard(home, wrong(undefined)),
      new ArgumentTypeError("Expected selectionId to be a string, got undefined."),
    ],
  };

  test.each(Object.entries(calls))("%s", (_, [call, error]) => {
    const cache = new SelectionCache({ ttlMs: 10 });
    cache.insert("a", pending(home, 1), 0);
    const before = selectionCache.order(cache);
    expect(() => call(cache)).toThrow(error); // had it gone through, the sweep at 99 would have taken the selection
    expect(selectionCache.order(cache)).toEqual(before);
    expect(cache.insert("b", pending(home, 0), 0)).toBe(1);
  });
});

describe("what is handed over", () => {
  test("comes back as it is, and keeps its key and its bytes whatever the caller does to it", () => {
    const cache = new SelectionCache<string>();
    const partition = { modelName: "m", routingGroup: "g" };
    const selection: PendingSelection<string> = { ...pending(partition, 2), worker: "a worker of the caller's" };
    const generation = cache.insert("a", selection, 0);
    partition.modelName = "another";
    expect(cache.peek({ modelName: "m", routingGroup: "g" }, "a", 0)?.selection).toBe(selection);
    expect(cache.peek(partition, "a", 0)).toBeNull();
    expect(cache.totalBytes).toBe(2 * 8 + 3);
    expect(cache.remove({ modelName: "m", routingGroup: "g" }, "a", generation)).toBe(true);
    expect(cache.totalBytes).toBe(0);
  });

  test("a peek is the caller's own: the cache keeps its generation", () => {
    const cache = new SelectionCache();
    cache.insert("a", pending(home, 0), 0);
    Object.assign(cache.peek(home, "a", 0) ?? {}, { generation: 9 });
    expect(cache.peek(home, "a", 0)?.generation).toBe(0);
  });
});

describe("what has gone leaves nothing behind but the partition that was emptied last", () => {
  const at = (modelName: string, routingGroup: string) => pending({ modelName, routingGroup }, 0);

  test("of 10,000 models created and removed one stays", () => {
    const cache = new SelectionCache();
    for (let n = 0; n < 10_000; n++) {
      const generation = cache.insert("a", at(`adapter-${n}`, "g"), 0);
      expect(cache.remove({ modelName: `adapter-${n}`, routingGroup: "g" }, "a", generation)).toBe(true);
    }
    expect(insideOf(cache)).toEqual({ listed: [], late: [], models: 1, partitions: 1 });
  });

  test("a partition that was emptied and used again goes when it is empty again", () => {
    const cache = new SelectionCache();
    for (const group of ["g", "g", "h", "g", "h"]) {
      cache.insert("a", at("m", group), 0);
      expect(cache.discard({ modelName: "m", routingGroup: group }, "a")).toBe(true);
      expect(insideOf(cache)).toMatchObject({ models: 1, partitions: 1 });
    }
    cache.insert("a", at("m", "h"), 0);
    cache.insert("a", at("n", "g"), 0);
    cache.discard({ modelName: "n", routingGroup: "g" }, "a");
    expect(insideOf(cache)).toMatchObject({ models: 2, partitions: 2 });
    expect(cache.peek({ modelName: "m", routingGroup: "h" }, "a", 0)?.generation).toBe(5);
  });

  test("a partition goes by whatever way its last selection goes", () => {
    const cache = new SelectionCache({ ttlMs: 10, maxEntries: 2 });
    cache.insert("a", at("m", "g"), 0);
    cache.insert("a", at("m", "h"), 0);
    cache.insert("a", at("n", "g"), 1); // evicts m, g
    expect(insideOf(cache)).toMatchObject({ models: 2, partitions: 3 });
    cache.insert("a", at("n", "g"), 11); // sweeps m, h, and replaces n, g
    expect(insideOf(cache)).toMatchObject({ models: 2, partitions: 2 });
    cache.discard({ modelName: "n", routingGroup: "g" }, "a");
    expect(insideOf(cache)).toMatchObject({ models: 1, partitions: 1 });
  });
});
