import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { BlockPool, coreOf } from "../../../src/core/block-pool.js";
import { compileCore } from "../../../src/core/compile.js";
import {
  CorePanicError,
  CoreUnavailableError,
  IdsExhaustedError,
  MemoryLimitError,
  ReferencesExhaustedError,
  UnknownCopyError,
} from "../../../src/errors.js";
import { verifyPool } from "../../support/verify.js";

const PAGE = 65_536;

// The narrow build has 16 slot numbers (one of them the sentinel's) with 2 generations each, and 12 references.
const narrow = new WebAssembly.Module(readFileSync(new URL("../../../build/core.narrow.wasm", import.meta.url)));

function reserve(pool: BlockPool, prefix: bigint[], fresh: number) {
  const outcome = pool.reserve(prefix, fresh);
  if (outcome === null) throw new Error("no room");
  return outcome.reservation;
}

/** Allocates and releases one block, so that a slot loses a generation. */
function spend(pool: BlockPool): number {
  const id = pool.allocatePrivate(reserve(pool, [], 1));
  pool.release(id);
  return id;
}

describe("ids", () => {
  test("every generation of every slot is used once, and then the pool says so and changes nothing", () => {
    const pool = new BlockPool({ capacity: 2, module: narrow });
    const ids = new Set(Array.from({ length: 15 * 2 }, () => spend(pool)));
    expect(ids.size).toBe(30);
    verifyPool(pool);
    expect(() => spend(pool)).toThrow(IdsExhaustedError);
    expect([pool.numActive, pool.numActiveRefs, pool.numInactive]).toEqual([0, 0, 0]);
    for (const id of ids) expect(() => pool.release(id)).toThrow(/Expected the id of a copy that this pool holds/);
    verifyPool(pool);
  });

  test("what is cached stays usable when the ids are exhausted", () => {
    const pool = new BlockPool({ capacity: 2, module: narrow });
    const { id } = pool.allocateCached(reserve(pool, [], 1), 7n);
    for (let spent = 0; spent < 14 * 2; spent++) spend(pool);
    expect(() => pool.reserve([], 1)).toThrow(IdsExhaustedError);
    pool.release(id);
    expect(pool.activatePrefix(reserve(pool, [7n], 0))).toEqual(Float64Array.of(id));
    pool.release(id);
    expect(() => pool.reserve([], 2)).toThrow(IdsExhaustedError); // evicting it would free one generation, not two
    expect(pool.prefixHit(7n)).toEqual({ isActive: false });
    verifyPool(pool);
  });

  test("a slot that eviction would retire is not counted on", () => {
    const pool = new BlockPool({ capacity: 1, module: narrow });
    for (let spent = 0; spent < 14 * 2 + 1; spent++) spend(pool); // one slot is left, in its last generation
    pool.release(pool.allocateCached(reserve(pool, [], 1), 9n).id);
    expect(() => pool.reserve([], 1)).toThrow(IdsExhaustedError);
    expect(pool.prefixHit(9n)).toEqual({ isActive: false });
    verifyPool(pool);
  });
});

describe("ids of another pool", () => {
  test("are unknown, though both pools have made the same moves", () => {
    const [one, other] = [new BlockPool({ capacity: 8 }), new BlockPool({ capacity: 8 })];
    const ids = [one, other].map((pool) => pool.allocateAllPrivate(reserve(pool, [], 8)));
    expect(new Set(ids.flatMap((list) => [...list])).size).toBe(16);
    for (const id of ids[1] as Float64Array) expect(() => one.release(id)).toThrow(UnknownCopyError);
    expect(() => one.cacheAll(ids[1] as Float64Array, Array(8).fill(1n))).toThrow(UnknownCopyError);
    expect([one.numActiveRefs, other.numActiveRefs]).toEqual([8, 8]);
    verifyPool(one);
  });
});

describe("references", () => {
  test("a pool counts up to its limit and refuses the next, unchanged", () => {
    const pool = new BlockPool({ capacity: 2, module: narrow });
    const { id } = pool.allocateCached(reserve(pool, [], 1), 7n);
    for (let count = 1; count < 12; count++) pool.activatePrefix(reserve(pool, [7n], 0));
    expect(pool.numActiveRefs).toBe(12);
    expect(() => pool.reserve([7n], 0)).toThrow(ReferencesExhaustedError);
    expect(() => pool.reserve([], 1)).toThrow(ReferencesExhaustedError);
    expect(() => pool.reserveResidentPrefix([7n, 8n], 2)).toThrow(ReferencesExhaustedError);
    verifyPool(pool);
    pool.release(id);
    expect(pool.activatePrefix(reserve(pool, [7n], 0))).toEqual(Float64Array.of(id));
    verifyPool(pool);
  });

  test("pins and reserved blocks count as the references that they will be", () => {
    const pool = new BlockPool({ capacity: 13, module: narrow });
    pool.release(pool.allocateCached(reserve(pool, [], 1), 7n).id);
    const pinned = reserve(pool, Array(12).fill(7n), 0);
    expect(() => pool.reserve([7n], 0)).toThrow(ReferencesExhaustedError);
    pool.cancel(pinned);
    const fresh = reserve(pool, [], 12);
    expect(() => pool.reserve([7n], 0)).toThrow(ReferencesExhaustedError);
    pool.cancel(fresh);
    verifyPool(pool);
  });
});

describe("memory", () => {
  test.each([1, 100, 2 ** 24 - 1])("an empty pool of %i blocks takes one page", (capacity) => {
    expect(new BlockPool({ capacity }).memoryBytes).toBe(PAGE);
    expect(new BlockPool({ capacity, maxMemoryBytes: PAGE }).memoryBytes).toBe(PAGE);
  });

  test.each([
    ["0", 0],
    ["one byte less than a page", PAGE - 1],
    ["not a number", Number.NaN],
  ])("a limit of %s is refused", (_, maxMemoryBytes) => {
    expect(() => new BlockPool({ capacity: 1, maxMemoryBytes })).toThrow(
      `Expected maxMemoryBytes to be at least 65536 bytes, one page, got ${maxMemoryBytes}.`,
    );
  });

  test("the error says how much was wanted and allowed, and smaller requests still fit", () => {
    const pool = new BlockPool({ capacity: 100_000, maxMemoryBytes: 4 * PAGE });
    let error: unknown;
    try {
      pool.reserve([], 100_000);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(MemoryLimitError);
    const { wantedBytes, maxBytes } = error as MemoryLimitError;
    expect(maxBytes).toBe(4 * PAGE);
    expect(wantedBytes).toBeGreaterThan(100_000 * 32);
    expect([pool.numActive, pool.memoryBytes]).toEqual([0, PAGE]);
    const ids = pool.allocateAllPrivate(reserve(pool, [], 1_000));
    pool.releaseAll(ids);
    expect(pool.numActive).toBe(0);
    verifyPool(pool);
  });

  test.each([1_000, 65_536, 200_000])("a full pool of %i blocks keeps to 72 bytes a block and 256 KiB", (capacity) => {
    const pool = new BlockPool({ capacity });
    const batch = 64;
    for (let done = 0; done < capacity; done += batch) {
      const count = Math.min(batch, capacity - done);
      const hashes = BigUint64Array.from(
        { length: count },
        (_, index) => BigInt(done + index) * 0x9e37_79b9_7f4a_7c15n,
      );
      pool.releaseChain(pool.allocateAllCached(reserve(pool, [], count), BigUint64Array.from(hashes)).ids);
    }
    expect(pool.numInactive).toBe(capacity);
    expect(pool.memoryBytes).toBeLessThanOrEqual(72 * capacity + 256 * 1024);
  });
});

describe("the core", () => {
  test("fifty pools live side by side and share nothing", () => {
    const pools = Array.from({ length: 50 }, (_, index) => new BlockPool({ capacity: index + 1 }));
    for (const pool of pools) reserve(pool, [], pool.capacity);
    expect(pools.map((pool) => pool.numActive)).toEqual(pools.map((pool) => pool.capacity));
  });

  test("a pool takes a module that was compiled asynchronously", async () => {
    const pool = new BlockPool({ capacity: 3, module: await compileCore() });
    expect(reserve(pool, [], 3).length).toBe(3);
  });

  test("a module that is not the core is refused", () => {
    const module = {} as WebAssembly.Module;
    expect(() => new BlockPool({ capacity: 3, module })).toThrow(CoreUnavailableError);
  });

  test("a broken invariant stops the pool for good, and names the place", () => {
    const pool = new BlockPool({ capacity: 3 });
    const reservation = reserve(pool, [], 2);
    coreOf(pool).exports.cancel(0, 2); // behind the facade's back: the core no longer owes the reservation anything
    let panic: unknown;
    try {
      pool.allocatePrivate(reservation);
    } catch (thrown) {
      panic = thrown;
    }
    expect(panic).toBeInstanceOf(CorePanicError);
    expect((panic as CorePanicError).place).toMatch(/^assembly\/pool\.ts:\d+$/);
    expect(() => pool.numActive).toThrow(panic as Error);
    expect(() => pool.prefixHit(1n)).toThrow(panic as Error);
    expect(() => reservation[Symbol.dispose ?? Symbol.for("Symbol.dispose")]()).not.toThrow();
    expect(new BlockPool({ capacity: 1 }).numActive).toBe(0);
  });
});
