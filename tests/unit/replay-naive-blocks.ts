import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { ReplayBlocks, ReplayPotential } from "../../src/sim/replay.js";

/** A table of blocks in use in plain maps, as a reader would write it down. */
export class NaiveBlocks implements ReplayBlocks {
  readonly waiting = new Map<bigint, number>();
  readonly active = new Map<WorkerWithDpRank["workerId"], Map<bigint, number>>();
  isDisposed = false;

  book({ workerId }: WorkerWithDpRank, hashes: BigUint64Array): number {
    const active = this.#of(workerId);
    let added = 0;
    for (const hash of hashes) {
      if (change(active, hash, 1) === 1) added++;
      change(this.waiting, hash, 1);
    }
    return added;
  }

  settle(hashes: BigUint64Array): void {
    for (const hash of hashes) change(this.waiting, hash, -1);
  }

  unbook({ workerId }: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number {
    if (waiting) this.settle(hashes);
    const active = this.#of(workerId);
    let gone = 0;
    for (const hash of hashes) if (change(active, hash, -1) === 0) gone++;
    return gone;
  }

  sole({ workerId }: WorkerWithDpRank, hashes: BigUint64Array): number {
    return hashes.filter((hash) => this.#of(workerId).get(hash) === 1).length;
  }

  potential(hashes: BigUint64Array, hot: number): ReplayPotential {
    const end = hashes.findIndex((hash) => (this.waiting.get(hash) ?? 0) < hot);
    const held = [...this.active].map(([workerId, active]) => {
      return { worker: { workerId, dpRank: 0 }, blocks: hashes.filter((hash) => active.has(hash)).length };
    });
    const workers = held.map(({ worker }) => worker);
    return { workers, blocks: held.map(({ blocks }) => blocks), hotBlocks: end < 0 ? hashes.length : end };
  }

  dispose(): void {
    this.isDisposed = true;
  }

  #of(workerId: WorkerWithDpRank["workerId"]): Map<bigint, number> {
    const active = this.active.get(workerId) ?? new Map<bigint, number>();
    this.active.set(workerId, active);
    return active;
  }
}

function change(counts: Map<bigint, number>, hash: bigint, by: number): number {
  const count = (counts.get(hash) ?? 0) + by;
  if (count < 0) throw new Error(`Nobody has booked ${hash}.`);
  if (count === 0) counts.delete(hash);
  else counts.set(hash, count);
  return count;
}
