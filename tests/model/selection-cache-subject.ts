import type { PeekedSelection, PendingSelection, RoutingPartition } from "../../src/selection/cache.js";
import { type CacheInside, insideOf, SelectionCache } from "../../src/selection/cache.js";

/** The public methods of SelectionCache, so that the real cache, the naive one and wrong ones run the same suites. */
export interface CacheUnderTest {
  readonly size: number;
  readonly totalBytes: number;
  insert(selectionId: string, selection: PendingSelection, nowMs: number, insertedAtMs?: number): number;
  peek(partition: RoutingPartition, selectionId: string, nowMs: number): PeekedSelection | null;
  remove(partition: RoutingPartition, selectionId: string, generation: number): boolean;
  discard(partition: RoutingPartition, selectionId: string): boolean;
}

export interface CacheOptions {
  readonly ttlMs?: number;
  readonly maxEntries?: number;
  readonly maxBytes?: number;
}

/** Model, group, id, anchor, generation, bytes. */
export type OrderRow = readonly [string, string, string, number, number, number];

/** A kind of cache that the suites can run on. */
export interface CacheSubject<C extends CacheUnderTest = CacheUnderTest> {
  readonly name: string;
  create(options: CacheOptions): C;
  /** Lists the order index, oldest first. Throws where an inner law is broken. */
  order(cache: C): OrderRow[];
  /** Counts the entries of the order index by walking it. */
  orderLength(cache: C): number;
}

export const selectionCache: CacheSubject<SelectionCache> = {
  name: "SelectionCache",
  create: (options) => new SelectionCache(options),
  orderLength(cache) {
    const { listed, late } = insideOf(cache);
    return listed.length + late.length;
  },
  order(cache) {
    const { listed, late, models, partitions } = insideOf(cache);
    const rows = listed.map(rowOf);
    for (const [index, row] of rows.entries()) {
      if (index > 0 && !isBefore(rows[index - 1] as OrderRow, row))
        throw new Error(`The list is unsorted at ${index}.`);
    }
    const heap = late.map(rowOf);
    for (const [index, row] of heap.entries()) {
      const above = heap[(index - 1) >> 1];
      if (above !== undefined && !isBefore(above, row)) throw new Error(`The heap is unsorted at ${index}.`);
    }
    const all = [...rows, ...heap].sort((left, right) => (isBefore(left, right) ? -1 : 1));
    const names = new Set(all.map(([model, group]) => JSON.stringify([model, group]))).size;
    if (partitions < names || partitions > names + 1)
      throw new Error(`Expected ${names} partitions, got ${partitions}.`);
    const modelNames = new Set(all.map(([model]) => model)).size;
    if (models < modelNames || models > modelNames + 1)
      throw new Error(`Expected ${modelNames} models, got ${models}.`);
    return all;
  },
};

function rowOf({ partition, id, insertedAtMs, generation, bytes }: CacheInside["listed"][number]): OrderRow {
  return [partition.modelName, partition.routingGroup, id, insertedAtMs, generation, bytes];
}

/** By anchor, then by generation; no two entries are equal in both. */
export function isBefore(left: OrderRow, right: OrderRow): boolean {
  return left[3] < right[3] || (left[3] === right[3] && left[4] < right[4]);
}

/** A selection with as many hashes as told, and with everything else such that a mix-up would show. */
export function pending(
  partition: RoutingPartition,
  hashCount: number,
  rest: Partial<PendingSelection> = {},
): PendingSelection {
  return {
    partition,
    worker: { workerId: 7, dpRank: 1 },
    sequenceHashes: new BigUint64Array(hashCount),
    islTokens: 12,
    effectivePrefillTokens: 8,
    expectedOutputTokens: 16,
    trackPrefillTokens: true,
    ...rest,
  };
}
