import type { WorkerWithDpRank } from "../core/keys.js";
import type { ReplayBlocks } from "./blocks.js";

/** A table of blocks in use in plain maps. */
export class MapBlocks implements ReplayBlocks {
  readonly #waiting = new Map<bigint, number>();
  readonly #active = new Map<WorkerWithDpRank, Map<bigint, number>>();

  book(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    const active = this.#of(worker);
    let added = 0;
    for (const hash of hashes) {
      if (change(active, hash, 1) === 1) added++;
      change(this.#waiting, hash, 1);
    }
    return added;
  }

  settle(hashes: BigUint64Array): void {
    for (const hash of hashes) change(this.#waiting, hash, -1);
  }

  unbook(worker: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number {
    if (waiting) this.settle(hashes);
    const active = this.#of(worker);
    let gone = 0;
    for (const hash of hashes) if (change(active, hash, -1) === 0) gone++;
    return gone;
  }

  sole(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    return hashes.filter((hash) => this.#of(worker).get(hash) === 1).length;
  }

  hotBlocks(hashes: BigUint64Array, requests: number): number {
    const end = hashes.findIndex((hash) => (this.#waiting.get(hash) ?? 0) < requests);
    return end < 0 ? hashes.length : end;
  }

  activeBlocks(worker: WorkerWithDpRank, hashes: BigUint64Array): number {
    return hashes.filter((hash) => this.#of(worker).has(hash)).length;
  }

  dispose(): void {
    this.#active.clear();
    this.#waiting.clear();
  }

  #of(worker: WorkerWithDpRank): Map<bigint, number> {
    const known = this.#active.get(worker) ?? new Map<bigint, number>();
    this.#active.set(worker, known);
    return known;
  }
}

function change(counts: Map<bigint, number>, hash: bigint, by: number): number {
  const count = (counts.get(hash) ?? 0) + by;
  if (count === 0) counts.delete(hash);
  else counts.set(hash, count);
  return count;
}
