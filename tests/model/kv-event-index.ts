import type { Hashes, WorkerId, WorkerWithDpRank } from "../../src/core/keys.js";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import type { KvEventIndex } from "../../src/selection/events.js";

/** An index that can be asked what it holds. */
export interface IndexUnderTest extends KvEventIndex {
  /** Counts the leading hashes that a rank holds. */
  overlapOf(worker: WorkerWithDpRank, hashes: Hashes): number;
  /** Gives what can be seen of everything that is held: two indexes that hold the same give the same. */
  contents(): unknown;
}

/** The index of the package. */
export class RealIndex extends PrefixIndex implements IndexUnderTest {
  overlapOf({ workerId, dpRank }: WorkerWithDpRank, hashes: Hashes): number {
    const found = this.overlap(hashes).find(({ worker }) => worker.workerId === workerId && worker.dpRank === dpRank);
    return found?.blocks ?? 0;
  }

  contents(): unknown {
    return this.size;
  }
}

/** An index as simple as can be: what each rank holds, and nothing about order, limits or time. */
export class NaiveIndex implements IndexUnderTest {
  readonly #ranks = new Map<string, { readonly worker: WorkerWithDpRank; readonly held: Set<bigint> }>();

  store(worker: WorkerWithDpRank, hashes: Hashes): void {
    const held = this.#open(worker);
    for (const hash of hashes) held.add(hash);
  }

  remove(worker: WorkerWithDpRank, hashes: Hashes): void {
    const held = this.#open(worker);
    for (const hash of hashes) held.delete(hash);
  }

  clear(worker: WorkerWithDpRank): void {
    this.#open(worker).clear();
  }

  removeWorker(workerId: WorkerId): void {
    for (const [key, { worker }] of this.#ranks)
      if (String(worker.workerId) === String(workerId)) this.#ranks.delete(key);
  }

  overlapOf(worker: WorkerWithDpRank, hashes: Hashes): number {
    const held = this.#open(worker);
    let blocks = 0;
    while (blocks < hashes.length && held.has(hashes[blocks] as bigint)) blocks++;
    return blocks;
  }

  /** Lists everything that is held, by rank. */
  contents(): Record<string, bigint[]> {
    const filled = [...this.#ranks].filter(([, { held }]) => held.size > 0).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(filled.map(([key, { held }]) => [key, [...held].sort((a, b) => (a < b ? -1 : 1))]));
  }

  #open(worker: WorkerWithDpRank): Set<bigint> {
    const key = `${worker.workerId}/${worker.dpRank}`;
    const rank = this.#ranks.get(key) ?? { worker, held: new Set<bigint>() };
    this.#ranks.set(key, rank);
    return rank.held;
  }
}
