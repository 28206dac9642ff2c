import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { workerKey } from "../../src/core/worker-key.js";
import type { BlockBook } from "../../src/selection/load.js";

/** The table of booked blocks as two Maps: references by worker and hash, waiting requests by hash. */
export class MapBlockBook implements BlockBook {
  readonly #references = new Map<string, Map<bigint, number>>();
  readonly #waiting = new Map<bigint, number>();

  book(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    const references = this.#of(worker);
    let added = 0;
    for (const hash of hashes) {
      if (count(references, hash, 1) === 1) added++;
      count(this.#waiting, hash, 1);
    }
    return added;
  }

  settle(hashes: BigUint64Array): void {
    for (const hash of hashes) count(this.#waiting, hash, -1);
  }

  unbook(worker: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number {
    const references = this.#of(worker);
    let removed = 0;
    for (const hash of hashes) {
      if (count(references, hash, -1) === 0) removed++;
      if (waiting) count(this.#waiting, hash, -1);
    }
    return removed;
  }

  sole(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    const references = this.#of(worker);
    return hashes.filter((hash) => references.get(hash) === 1).length;
  }

  waiting(hash: bigint): number {
    return this.#waiting.get(hash) ?? 0;
  }

  /** Counts the entries of both tables. */
  get size(): number {
    let size = this.#waiting.size;
    for (const references of this.#references.values()) size += references.size;
    return size;
  }

  #of({ workerId, dpRank }: WorkerWithDpRank): Map<bigint, number> {
    const name = `${typeof workerKey(workerId)} ${workerId} ${dpRank}`;
    const known = this.#references.get(name) ?? new Map<bigint, number>();
    this.#references.set(name, known);
    return known;
  }
}

/** Changes a count by one. Returns what it is then; a count of 0 is not kept. */
function count(counts: Map<bigint, number>, hash: bigint, change: 1 | -1): number {
  const now = (counts.get(hash) ?? 0) + change;
  if (now < 0) throw new RangeError(`Expected block ${hash} to have a count left to take, got none.`);
  if (now === 0) counts.delete(hash);
  else counts.set(hash, now);
  return now;
}
