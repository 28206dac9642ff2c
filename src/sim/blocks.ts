import type { WorkerWithDpRank } from "../core/keys.js";
import type { BlockBook } from "../selection/load.js";

/** What the replay asks of a table of the blocks that unfinished requests keep in use. `BookedBlocks` is one. */
export interface ReplayBlocks extends BlockBook {
  /** Counts how many of the hashes are in use on each worker that has any, and how many leading ones are hot. */
  potential(hashes: BigUint64Array, hot: number): ReplayPotential;
  dispose(): void;
}

export interface ReplayPotential {
  readonly workers: readonly WorkerWithDpRank[];
  readonly blocks: readonly number[];
  readonly hotBlocks: number;
}

const NOTHING: ReplayPotential = { workers: [], blocks: [], hotBlocks: 0 };

/** The table of a replay without time: each request ends before the next, so that nothing is ever in use. */
export const NO_BLOCKS: ReplayBlocks = {
  book: () => 0,
  settle: () => undefined,
  unbook: () => 0,
  sole: () => 0,
  potential: () => NOTHING,
  dispose: () => undefined,
};

/** What of the request at hand is in use where. The table is asked when somebody wants to know, and once. */
export class ActiveBlocks {
  readonly #table: ReplayBlocks;
  readonly #hot: number;
  /** By worker, whose ids are their places. */
  readonly #blocks: Uint32Array;
  #hotBlocks = 0;
  #hashes: BigUint64Array | undefined;

  /** @param hot unfinished prefills that make a block hot */
  constructor(table: ReplayBlocks, workers: number, hot: number) {
    this.#table = table;
    this.#hot = hot;
    this.#blocks = new Uint32Array(workers);
  }

  consider(hashes: BigUint64Array): void {
    this.#hashes = hashes;
  }

  /** Counts the blocks that unfinished requests keep in use on a worker. */
  on(worker: number): number {
    this.#ask();
    return this.#blocks[worker] as number;
  }

  /** Counts the leading blocks that are hot. */
  get hotBlocks(): number {
    this.#ask();
    return this.#hotBlocks;
  }

  #ask(): void {
    if (this.#hashes === undefined) return;
    const { workers, blocks, hotBlocks } = this.#table.potential(this.#hashes, this.#hot);
    this.#hashes = undefined;
    this.#hotBlocks = hotBlocks;
    this.#blocks.fill(0);
    for (let at = 0; at < workers.length; at++) {
      this.#blocks[Number(workers[at]?.workerId)] = blocks[at] as number;
    }
  }
}
