import type { WorkerWithDpRank } from "../../src/core/keys.js";

/** What the benchmarks call of a table of booked blocks. */
export interface Booked {
  readonly size: { readonly blocks: number; readonly entries: number };
  book(worker: WorkerWithDpRank, hashes: BigUint64Array): number;
  settle(hashes: BigUint64Array): void;
  unbook(worker: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number;
  potential(
    hashes: BigUint64Array,
    hot: number,
  ): { readonly workers: readonly WorkerWithDpRank[]; readonly blocks: readonly number[]; readonly hotBlocks: number };
}
