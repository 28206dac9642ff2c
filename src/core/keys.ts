/** The identity of a block and of everything before it: an unsigned 64-bit integer. */
export type SequenceHash = bigint;

/** Sequence hashes from root to leaf. A `BigUint64Array` crosses to the core in one copy; a list is checked one by one. */
export type Hashes = BigUint64Array | readonly bigint[];

/** Names one physical copy of a block: slot and generation in 53 bits. A copy that has gone never answers to its id again. */
export type BlockCopyId = number;

/** Ids of copies. A `Float64Array` crosses to the core in one copy; a list is checked one by one. */
export type CopyIds = Float64Array | readonly number[];

/** Names a worker. `1` and `1n` are the same worker, `"1"` is another; numbers are whole. */
export type WorkerId = string | number | bigint;

/** One scheduler of a worker: with data parallelism a worker has several, each with a KV cache of its own. */
export interface WorkerWithDpRank {
  readonly workerId: WorkerId;
  readonly dpRank: number;
}
