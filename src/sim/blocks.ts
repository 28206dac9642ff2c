import type { WorkerWithDpRank } from "../core/keys.js";
import type { BlockBook } from "../selection/load.js";

/** What the replay asks of a table of the blocks that unfinished requests keep in use. */
export interface ReplayBlocks extends BlockBook {
  /** Counts the leading blocks that at least so many unfinished prefills contain. */
  hotBlocks(hashes: BigUint64Array, requests: number): number;
  /** Counts the blocks that unfinished requests keep in use on a worker. */
  activeBlocks(worker: WorkerWithDpRank, hashes: BigUint64Array): number;
  dispose(): void;
}

/** The table of a replay without time: each request ends before the next, so that nothing is ever in use. */
export const NO_BLOCKS: ReplayBlocks = {
  book: () => 0,
  settle: () => undefined,
  unbook: () => 0,
  sole: () => 0,
  hotBlocks: () => 0,
  activeBlocks: () => 0,
  dispose: () => undefined,
};
