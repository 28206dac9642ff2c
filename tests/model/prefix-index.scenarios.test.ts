import { describe, expect, test } from "vitest";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { scaled } from "../support/scale.js";
import { verifyIndex } from "./prefix-index-world.js";

// What other routers have got wrong, each with the outcome that is right.

const at = (workerId: string | number, dpRank = 0) => ({ workerId, dpRank });

/** Chains of hashes that no other chain has. */
function chains(length: number): () => BigUint64Array {
  let count = 0n;
  return () => {
    const chain = BigUint64Array.from({ length }, (_, i) => (count + BigInt(i)) * 0x9e37_79b9_7f4a_7c15n);
    count += BigInt(length);
    return chain;
  };
}

describe("memory stays within its bounds", () => {
  test("a million distinct prompts of four blocks leave no more than 50,000 entries, and the newest are known", () => {
    const cap = 50_000;
    const index = new PrefixIndex({ maxEntries: cap });
    const next = chains(4);
    const prompts = scaled(1_000_000);
    let warm = 0;
    let newest = next();
    for (let prompt = 0; prompt < prompts; prompt++) {
      newest = next();
      index.store(at(prompt % 8), newest);
      if (prompt % 1_000 === 0) expect(index.size.entries).toBeLessThanOrEqual(cap);
      if (prompt === cap / 4) warm = index.memoryBytes;
    }
    expect(index.size).toEqual({ blocks: cap, entries: cap });
    expect(index.memoryBytes).toBe(warm);
    expect(index.stats.evicted).toBe(4 * prompts - cap);
    expect(index.overlap(newest)).toEqual([{ worker: at((prompts - 1) % 8), blocks: 4 }]);
    verifyIndex(index);
  });

  test("tails that nobody holds any more are gone though the root they shared lives on", () => {
    const index = new PrefixIndex();
    const root = [1n, 2n];
    index.store(at("keeper"), root);
    const tails = scaled(100_000);
    for (let tail = 0; tail < tails; tail++) {
      index.store(at(`owner ${tail % 100}`), [...root, BigInt(1_000 + tail), BigInt(1_000_000 + tail)]);
    }
    expect(index.size.blocks).toBe(2 + 2 * tails);
    for (let owner = 0; owner < 100; owner++) index.removeWorker(`owner ${owner}`);
    expect(index.size).toEqual({ blocks: 2, entries: 2 });
    expect(index.overlap(root)).toEqual([{ worker: at("keeper"), blocks: 2 }]);
    verifyIndex(index);
  });

  test("ten times the bound within one moment never passes it, without any timer", () => {
    const index = new PrefixIndex({ maxEntries: 1_000, ttlMs: 60_000 });
    const next = chains(10);
    for (let store = 0; store < 1_000; store++) {
      index.store(at(store % 3), next(), { nowMs: 5 });
      expect(index.size.entries).toBeLessThanOrEqual(1_000);
    }
    expect(index.size.entries).toBe(1_000);
    expect(index.stats).toEqual({ evicted: 9_000, expired: 0 });
  });

  test("10,000 adapters that come and go leave what was there before, in the memory that was there before", () => {
    const index = new PrefixIndex();
    const next = chains(16);
    index.store(at("base"), next());
    const adapters = (from: number, to: number) => {
      for (let adapter = from; adapter < to; adapter++) {
        index.store(at(`adapter ${adapter}`), next());
        if (adapter >= 50) index.removeWorker(`adapter ${adapter - 50}`);
      }
    };
    adapters(0, 100);
    const bytes = index.memoryBytes;
    adapters(100, 10_000);
    for (let adapter = 9_950; adapter < 10_000; adapter++) index.removeWorker(`adapter ${adapter}`);
    expect(index.size).toEqual({ blocks: 16, entries: 16 });
    expect(index.memoryBytes).toBe(bytes);
    verifyIndex(index);
  });
});

describe("workers", () => {
  test("a removed worker is never found, and starts anew when it comes back under its name", () => {
    const index = new PrefixIndex();
    const prompt = [1n, 2n, 3n];
    for (const id of ["w1", "w2", "w3"]) index.store(at(id), [1n]);
    index.store(at("w2"), prompt);
    expect(index.overlap(prompt)[0]?.worker).toEqual(at("w2"));
    index.removeWorker("w2");
    expect(index.overlap(prompt).map(({ worker }) => worker.workerId)).toEqual(["w1", "w3"]);
    expect(index.size).toEqual({ blocks: 1, entries: 2 });
    index.store(at("w2"), [9n]);
    expect(index.overlap(prompt).map(({ worker }) => worker.workerId)).toEqual(["w1", "w3"]);
    expect(index.size).toEqual({ blocks: 2, entries: 3 });
  });

  test("clearing a rank drops all that it held, and nothing of the others", () => {
    const index = new PrefixIndex();
    const prompt = [1n, 2n, 3n];
    for (const worker of [at("a", 0), at("a", 1), at("b", 0)]) index.store(worker, prompt);
    index.clear(at("a", 0));
    expect(index.overlap(prompt)).toEqual([
      { worker: at("a", 1), blocks: 3 },
      { worker: at("b", 0), blocks: 3 },
    ]);
    expect(index.size).toEqual({ blocks: 3, entries: 6 });
  });

  test("what rank 1 loses, rank 0 keeps", () => {
    const index = new PrefixIndex();
    index.store(at("a", 0), [1n, 2n]);
    index.store(at("a", 1), [1n, 2n]);
    index.remove(at("a", 1), [1n, 2n]);
    expect(index.overlap([1n, 2n])).toEqual([{ worker: at("a", 0), blocks: 2 }]);
  });
});

describe("a limit of one worker", () => {
  test("lets its oldest entries go at once, leaves before their parents, and keeps no more from then on", () => {
    const index = new PrefixIndex();
    index.store(at("a"), [1n, 2n, 3n, 4n]);
    index.store(at("b"), [1n, 2n, 3n, 4n]);
    index.limit(at("a"), 2);
    expect(index.stats).toEqual({ evicted: 2, expired: 0 });
    expect(index.overlap([1n, 2n, 3n, 4n]).map(({ blocks }) => blocks)).toEqual([4, 2]);
    index.store(at("a"), [11n, 12n, 13n]);
    expect(index.overlap([11n, 12n, 13n])).toEqual([{ worker: at("a"), blocks: 2 }]);
    expect(index.overlap([1n])).toEqual([{ worker: at("b"), blocks: 1 }]);
    expect(index.size.entries).toBe(6);
    verifyIndex(index);
  });

  test("may come before the first store, outlives clear and ends with removeWorker", () => {
    const index = new PrefixIndex({ maxEntriesPerWorker: 3 });
    const held = () => {
      index.store(at("a"), [1n, 2n, 3n, 4n]);
      return index.overlap([1n, 2n, 3n, 4n])[0]?.blocks;
    };
    index.limit(at("a"), 2);
    expect(index.overlap([1n])).toEqual([]);
    expect(held()).toBe(2);
    index.clear(at("a"));
    expect(held()).toBe(2);
    index.limit(at("a"), 3);
    expect(held()).toBe(3);
    index.limit(at("a"), 1);
    index.removeWorker("a");
    expect(held()).toBe(3);
    verifyIndex(index);
  });

  // Were the age of a parent known to an eighth of the whole index only, the parent would be the next to go: its child
  // would find no room.
  test("leaves room under a parent that its worker used longest ago, however large the index is", () => {
    const index = new PrefixIndex();
    index.limit(at("a"), 8);
    index.store(at("a"), [1n, 2n, 3n, 4n]);
    index.store(at("a"), [11n, 12n, 13n, 14n]);
    index.store(at("a"), [5n], { parent: 4n });
    expect(index.overlap([1n, 2n, 3n, 4n, 5n])[0]?.blocks).toBe(5);
    expect(index.overlap([11n, 12n, 13n, 14n])[0]?.blocks).toBe(3);
  });

  test("that is learnt anew with every request costs no memory, and evicts no more than it must", () => {
    const index = new PrefixIndex({ maxEntries: 10_000 });
    const next = chains(10);
    for (let request = 0; request < 200; request++) index.store(at("a"), next());
    const bytes = index.memoryBytes;
    for (let request = 0; request < 2_000; request++) {
      const size = 1_000 + (request % 2 === 0 ? 10 : 0);
      index.limit(at("a"), size);
      index.store(at("a"), next());
      expect(index.size.entries).toBe(size);
    }
    expect(index.memoryBytes).toBe(bytes);
    expect(index.stats.evicted).toBe(2_000 + 20_000 - 1_000);
    verifyIndex(index);
  });
});

describe("churn", () => {
  // 50,000 in the normal suite; KVROUTE_TEST_SCALE=200 makes it the ten million of a long run.
  const operations = scaled(50_000);

  test(`${operations.toLocaleString("en")} random operations of 2,000 workers that come and go end with the memory they began with`, () => {
    const index = new PrefixIndex({ maxEntries: 20_000, maxEntriesPerWorker: 500 });
    const random = randomOf(7);
    const steps = Math.ceil(operations / 4);
    churn(index, random, steps); // so far the memory may grow
    for (let id = 0; id < 2_000; id++) index.removeWorker(id);
    expect(index.size).toEqual({ blocks: 0, entries: 0 });
    fill(index);
    const bytes = index.memoryBytes;
    churn(index, random, operations - steps);
    expect(index.memoryBytes).toBe(bytes);
    for (let id = 0; id < 2_000; id++) index.removeWorker(id);
    expect(index.size).toEqual({ blocks: 0, entries: 0 });
    verifyIndex(index);
    fill(index);
    expect(index.memoryBytes).toBe(bytes);
  });
});

/** The fullest that the index can be: every entry has a block of its own, and all workers are known. */
function fill(index: PrefixIndex): void {
  const next = chains(10);
  for (let id = 0; id < 2_000; id++) index.store(at(id), next());
  expect(index.size).toEqual({ blocks: 20_000, entries: 20_000 });
}

function churn(index: PrefixIndex, random: (below: number) => number, operations: number): void {
  const worker = () => at(random(2_000), 0);
  for (let operation = 0; operation < operations; operation++) {
    const start = random(3_000) * 8;
    const chain = BigUint64Array.from({ length: 1 + random(8) }, (_, i) => BigInt(start + i));
    const verb = random(20);
    if (verb < 12) index.store(worker(), chain, start > 0 && verb < 3 ? { parent: BigInt(start - 1) } : {});
    else if (verb < 15) index.remove(worker(), chain);
    else if (verb < 18) index.overlap(chain);
    else if (verb < 19) index.clear(worker());
    else if (random(2) === 0) index.limit(worker(), 1 + random(500));
    else index.removeWorker(random(2_000));
  }
  expect(index.size.entries).toBeLessThanOrEqual(20_000);
}

/** Seeded numbers below a bound (splitmix32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x9e37_79b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0_aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a_2d97);
    return ((z ^ (z >>> 15)) >>> 0) % below;
  };
}
