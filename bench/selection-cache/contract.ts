import type { PeekedSelection, PendingSelection, RoutingPartition } from "../../src/selection/cache.js";
import { generator } from "../prng.js";

/** What the benchmarks call of a selection cache. */
export interface Cache {
  readonly size: number;
  readonly totalBytes: number;
  insert(selectionId: string, selection: PendingSelection, nowMs: number, insertedAtMs?: number): number;
  peek(partition: RoutingPartition, selectionId: string, nowMs: number): PeekedSelection | null;
  remove(partition: RoutingPartition, selectionId: string, generation: number): boolean;
}

export type MakeCache = (options: { maxEntries: number; maxBytes: number }) => Cache;

export const HASHES = 512;
export const PARTITION: RoutingPartition = { modelName: "meta-llama/Llama-3.1-8B-Instruct", routingGroup: "default" };

/** Makes the selection that a router hands over for a prompt of 8,192 tokens. */
export function selectionOf(sequenceHashes: BigUint64Array, worker: number): PendingSelection {
  return {
    partition: PARTITION,
    worker: { workerId: worker, dpRank: 0 },
    sequenceHashes,
    islTokens: 8_192,
    effectivePrefillTokens: 4_096,
    expectedOutputTokens: 256,
    trackPrefillTokens: true,
  };
}

/** Makes ids in the form of a UUID, each a string of its own, as a parser of requests leaves them. */
export function makeIds(count: number, seed: number): string[] {
  const next = generator(seed);
  const hex = (length: number) => next().toString(16).padStart(8, "0").slice(-length);
  const ids = Array.from({ length: count }, () => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(6)}${hex(6)}`);
  return JSON.parse(JSON.stringify(ids)) as string[]; // what was put together from parts is slower to read
}
