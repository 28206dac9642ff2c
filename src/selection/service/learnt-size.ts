import type { PrefixIndex } from "../../core/prefix-index.js";
import type { WorkerRow } from "../catalog/row.js";

/** By how much one report changes what the router believes of the size of a worker's cache. */
const STEP = 0.02;

/** Learns how well predictions of cached tokens hold, and from them how many blocks a worker really keeps. */
export class LearntSizes {
  readonly #index: PrefixIndex;
  readonly #isLearning: boolean;
  #reports = 0;
  #errorTokens = 0;

  /** @param isLearning whether the index follows the router's own decisions: engines that report blocks need no guess */
  constructor(index: PrefixIndex, isLearning: boolean) {
    this.#index = index;
    this.#isLearning = isLearning;
  }

  /** How many reports there were, and how far off the mean prediction was. */
  get stats(): { readonly reports: number; readonly meanErrorTokens: number } {
    return { reports: this.#reports, meanErrorTokens: this.#reports === 0 ? 0 : this.#errorTokens / this.#reports };
  }

  /** Gives a worker its part of the index: as many blocks as its cache has, where that is known and new. */
  settle(row: WorkerRow): void {
    const { totalKvBlocks } = row.entry.settings;
    if (!this.#isLearning || totalKvBlocks === undefined || totalKvBlocks === row.statedKvBlocks) return;
    row.statedKvBlocks = totalKvBlocks;
    this.#limit(row, totalKvBlocks);
  }

  /** Gives a rank that has gone as much room as any: if it comes back, nothing has been learnt of it. */
  forget(row: WorkerRow): void {
    if (row.indexLimit !== undefined) this.#limit(row, this.#index.maxEntriesPerWorker);
  }

  /**
   * Compares what was predicted of a request with what its engine reports. Where the worker held less, its part of the index
   * shrinks by 2 %, where it held more, it grows. One block is no difference: engines compute the last one again.
   */
  report(row: WorkerRow, predictedBlocks: number, cachedTokens: number, blockSize: number): void {
    this.#reports++;
    this.#errorTokens += Math.abs(predictedBlocks * blockSize - cachedTokens);
    if (!this.#isLearning) return;
    const difference = Math.floor(cachedTokens / blockSize) - predictedBlocks;
    const size = row.indexLimit ?? this.#index.maxEntriesPerWorker;
    if (difference < -1) this.#limit(row, Math.floor(size * (1 - STEP)));
    else if (difference > 0) this.#limit(row, Math.ceil(size * (1 + STEP)));
  }

  #limit(row: WorkerRow, size: number): void {
    const limit = Math.min(Math.max(size, 1), this.#index.maxEntriesPerWorker);
    if (limit === row.indexLimit) return;
    row.indexLimit = limit;
    this.#index.limit(row.worker, limit);
  }
}
