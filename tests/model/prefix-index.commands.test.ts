import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import { type IndexSpace, indexWalk } from "./prefix-index-walk.js";
import { makePrefixIndex } from "./prefix-index-world.js";

const bound = fc.integer({ min: 1, max: 40 });
const unbounded: IndexSpace = {
  options: fc.constant({}),
  levels: 5,
  hash: BigInt,
  messy: true,
  ids: [1, 1n, "1", 2n ** 60n],
  ranks: 2,
};

describe("the prefix index beside the naive one does the same", () => {
  test("without bounds", () => {
    indexWalk(makePrefixIndex, unbounded, { runs: scaled(150), commandsMax: 60 });
  });

  test("with few entries", () => {
    const space = { ...unbounded, options: fc.record({ maxEntries: bound }) };
    const { evicted } = indexWalk(makePrefixIndex, space, { runs: scaled(300), commandsMax: 80 });
    expect(evicted).toBeGreaterThan(0);
  });

  test("with few entries, and fewer of a worker", () => {
    const space = { ...unbounded, options: fc.record({ maxEntries: bound, maxEntriesPerWorker: bound }) };
    indexWalk(makePrefixIndex, space, { runs: scaled(300), commandsMax: 80 });
  });

  test("with a time to live", () => {
    const space = { ...unbounded, options: fc.record({ ttlMs: fc.constantFrom(0.5, 10, 60), maxEntries: bound }) };
    indexWalk(makePrefixIndex, space, { runs: scaled(300), commandsMax: 80 });
  });

  test("with hashes at the borders of their bits", () => {
    const extremes = [0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n - 2n];
    const hash = (node: number) => extremes[node - 1] as bigint;
    const space = { ...unbounded, levels: 3, hash, options: fc.record({ maxEntries: bound }) };
    indexWalk(makePrefixIndex, space, { runs: scaled(150), commandsMax: 60 });
  });

  test("while it grows, with many workers", () => {
    const ids = Array.from({ length: 60 }, (_, id) => id);
    const space = { ...unbounded, ids, options: fc.constantFrom({}, { maxEntries: 500 }) };
    indexWalk(makePrefixIndex, space, { runs: scaled(10), commandsMax: 400 });
  });
});

describe("where stores agree on the parent of every block", () => {
  const agreeing = { ...unbounded, messy: false };

  test("no block is evicted before a child of it that the same worker holds", () => {
    const space = { ...agreeing, options: fc.record({ maxEntries: bound, maxEntriesPerWorker: bound }) };
    const { evicted } = indexWalk(makePrefixIndex, space, { runs: scaled(300), commandsMax: 120 });
    expect(evicted).toBeGreaterThan(0);
  });

  test("nor where blocks have a time to live", () => {
    const space = { ...agreeing, options: fc.record({ ttlMs: fc.constantFrom(10, 60), maxEntries: bound }) };
    indexWalk(makePrefixIndex, space, { runs: scaled(200), commandsMax: 120 });
  });
});
