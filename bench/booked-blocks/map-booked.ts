import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Booked } from "./contract.js";

// The table as one writes it down first: from a hash to the references of each worker. It checks nothing and has no bound.

interface Block {
  waiting: number;
  readonly references: Map<WorkerWithDpRank, number>;
}

/** Booked blocks in a Map of Maps. */
export class MapBooked implements Booked {
  readonly #blocks = new Map<bigint, Block>();
  #entries = 0;

  get size(): { blocks: number; entries: number } {
    return { blocks: this.#blocks.size, entries: this.#entries };
  }

  book(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    const before = this.#entries;
    for (const hash of hashes) {
      let block = this.#blocks.get(hash);
      if (block === undefined) {
        block = { waiting: 0, references: new Map() };
        this.#blocks.set(hash, block);
      }
      const references = block.references.get(worker) ?? 0;
      if (references === 0) this.#entries++;
      block.references.set(worker, references + 1);
      block.waiting++;
    }
    return this.#entries - before;
  }

  settle(hashes: BigUint64Array): void {
    for (const hash of hashes) (this.#blocks.get(hash) as Block).waiting--;
  }

  unbook(worker: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number {
    const before = this.#entries;
    for (const hash of hashes) {
      const block = this.#blocks.get(hash) as Block;
      const references = (block.references.get(worker) as number) - 1;
      if (waiting) block.waiting--;
      if (references > 0) {
        block.references.set(worker, references);
        continue;
      }
      block.references.delete(worker);
      this.#entries--;
      if (block.references.size === 0) this.#blocks.delete(hash);
    }
    return before - this.#entries;
  }

  potential(hashes: BigUint64Array, hot: number) {
    const counts = new Map<WorkerWithDpRank, number>();
    let hotBlocks = 0;
    let position = 0;
    for (const hash of hashes) {
      const block = this.#blocks.get(hash);
      if (block !== undefined) {
        if (hotBlocks === position && block.waiting >= hot) hotBlocks++;
        for (const worker of block.references.keys()) counts.set(worker, (counts.get(worker) ?? 0) + 1);
      }
      position++;
    }
    return { workers: [...counts.keys()], blocks: [...counts.values()], hotBlocks };
  }
}
