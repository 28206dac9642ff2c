import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Index } from "./contract.js";

// The index as one writes it down first: from a hash to the set of its workers. It has no bound and no order of use.

/** The prefix index in a Map of Sets. */
export class MapIndex implements Index {
  readonly #workers: WorkerWithDpRank[] = [];
  readonly #numbers = new Map<string | number | bigint, number>();
  readonly #holders = new Map<bigint, Set<number>>();
  #entries = 0;

  get size(): { blocks: number; entries: number } {
    return { blocks: this.#holders.size, entries: this.#entries };
  }

  store(worker: WorkerWithDpRank, hashes: BigUint64Array): void {
    const number = this.#numberOf(worker);
    for (const hash of hashes) {
      let holders = this.#holders.get(hash);
      if (holders === undefined) {
        holders = new Set();
        this.#holders.set(hash, holders);
      }
      if (holders.has(number)) continue;
      holders.add(number);
      this.#entries++;
    }
  }

  remove(worker: WorkerWithDpRank, hashes: BigUint64Array): void {
    const number = this.#numberOf(worker);
    for (const hash of hashes) {
      const holders = this.#holders.get(hash);
      if (!holders?.delete(number)) continue;
      this.#entries--;
      if (holders.size === 0) this.#holders.delete(hash);
    }
  }

  overlap(hashes: BigUint64Array): { worker: WorkerWithDpRank; blocks: number }[] {
    const blocks = new Map<number, number>();
    let left: number[] | undefined;
    let level = 0;
    for (; level < hashes.length; level++) {
      const holders = this.#holders.get(hashes[level] as bigint);
      if (holders === undefined) break;
      const stay: number[] = left === undefined ? [...holders] : left.filter((number) => holders.has(number));
      if (stay.length === 0) break;
      if (left === undefined || stay.length < left.length) for (const number of left ?? []) blocks.set(number, level);
      left = stay;
    }
    for (const number of left ?? []) blocks.set(number, level);
    return [...blocks]
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .map(([number, count]) => ({ worker: this.#workers[number] as WorkerWithDpRank, blocks: count }));
  }

  #numberOf(worker: WorkerWithDpRank): number {
    let number = this.#numbers.get(worker.workerId);
    if (number === undefined) {
      number = this.#workers.push(worker) - 1;
      this.#numbers.set(worker.workerId, number);
    }
    return number;
  }
}
