import type { WorkerWithDpRank } from "../../src/core/keys.js";

/** What the benchmarks call of a prefix index. */
export interface Index {
  readonly size: { readonly blocks: number; readonly entries: number };
  store(worker: WorkerWithDpRank, hashes: BigUint64Array): void;
  remove(worker: WorkerWithDpRank, hashes: BigUint64Array): void;
  overlap(hashes: BigUint64Array): { worker: WorkerWithDpRank; blocks: number }[];
}

export type MakeIndex = (options: { maxEntries: number }) => Index;
