import type { Hashes, WorkerWithDpRank } from "../../src/core/keys.js";
import { BlocksExhaustedError, NotBookedError } from "../../src/errors.js";

/** The public methods of BookedBlocks, so that the real one and the naive one run the same suites. */
export interface BookedUnderTest {
  readonly size: { readonly blocks: number; readonly entries: number };
  book(worker: WorkerWithDpRank, hashes: Hashes): number;
  settle(hashes: Hashes): void;
  unbook(worker: WorkerWithDpRank, hashes: Hashes, waiting: boolean): number;
  sole(worker: WorkerWithDpRank, hashes: Hashes): number;
  potential(hashes: Hashes, hot: number): PotentialUnderTest;
}

export interface PotentialUnderTest {
  readonly workers: readonly WorkerWithDpRank[];
  readonly blocks: readonly number[];
  readonly hotBlocks: number;
}

export interface BookedOptions {
  readonly maxBlocks?: number;
  readonly maxMemoryBytes?: number;
}

/** What the bookings on one worker and rank refer to. */
interface Holder {
  readonly worker: WorkerWithDpRank;
  readonly references: Map<bigint, number>;
}

/** The reference of the model tests: maps of counts, and lists that are checked before anything changes. */
export class NaiveBooked implements BookedUnderTest {
  readonly #holders = new Map<string, Holder>();
  readonly #waiting = new Map<bigint, number>();
  readonly #most: number;

  constructor(options: BookedOptions = {}) {
    this.#most = options.maxBlocks ?? 4_000_000;
  }

  get size(): { blocks: number; entries: number } {
    const holders = [...this.#holders.values()];
    return {
      blocks: new Set(holders.flatMap(({ references }) => [...references.keys()])).size,
      entries: holders.reduce((sum, { references }) => sum + references.size, 0),
    };
  }

  book(worker: WorkerWithDpRank, hashes: Hashes): number {
    const holder = this.#holders.get(nameOf(worker)) ?? { worker, references: new Map<bigint, number>() };
    const fresh = new Set([...hashes].filter((hash) => !holder.references.has(hash))).size;
    if (this.size.entries + fresh > this.#most) throw new BlocksExhaustedError(this.#most, hashes.length);
    if (hashes.length > 0) this.#holders.set(nameOf(worker), holder);
    for (const hash of hashes) {
      change(holder.references, hash, 1);
      change(this.#waiting, hash, 1);
    }
    return fresh;
  }

  settle(hashes: Hashes): void {
    refuseFirst(hashes, (hash, times) => this.waitingFor(hash) >= times);
    for (const hash of hashes) change(this.#waiting, hash, -1);
  }

  unbook(worker: WorkerWithDpRank, hashes: Hashes, waits: boolean): number {
    const references = this.#holders.get(nameOf(worker))?.references ?? new Map<bigint, number>();
    refuseFirst(hashes, (hash, times) => {
      if ((references.get(hash) ?? 0) < times) return false;
      const waiting = this.waitingFor(hash);
      return waits ? waiting >= times : waiting <= this.#referencesOf(hash) - times;
    });
    const before = references.size;
    for (const hash of hashes) {
      change(references, hash, -1);
      if (waits) change(this.#waiting, hash, -1);
    }
    if (references.size === 0) this.#holders.delete(nameOf(worker));
    return before - references.size;
  }

  sole(worker: WorkerWithDpRank, hashes: Hashes): number {
    const references = this.#holders.get(nameOf(worker))?.references;
    refuseFirst(hashes, (hash) => references?.has(hash) ?? false);
    return [...hashes].filter((hash) => references?.get(hash) === 1).length;
  }

  potential(hashes: Hashes, hot: number): PotentialUnderTest {
    const list = [...hashes];
    const active = [...this.#holders.values()]
      .map(({ worker, references }) => ({ worker, blocks: list.filter((hash) => references.has(hash)).length }))
      .filter(({ blocks }) => blocks > 0);
    const cold = list.findIndex((hash) => this.waitingFor(hash) < hot);
    return {
      workers: active.map(({ worker }) => worker),
      blocks: active.map(({ blocks }) => blocks),
      hotBlocks: cold < 0 ? list.length : cold,
    };
  }

  /** Counts the bookings that wait for a hash. */
  waitingFor(hash: bigint): number {
    return this.#waiting.get(hash) ?? 0;
  }

  /** Those who hold something. */
  workers(): WorkerWithDpRank[] {
    return [...this.#holders.values()].map(({ worker }) => worker);
  }

  /** Every reference that there is. */
  references(): { readonly worker: WorkerWithDpRank; readonly hash: bigint }[] {
    return [...this.#holders.values()].flatMap(({ worker, references }) =>
      [...references].flatMap(([hash, count]) =>
        new Array<bigint>(count).fill(hash).map((each) => ({ worker, hash: each })),
      ),
    );
  }

  #referencesOf(hash: bigint): number {
    return [...this.#holders.values()].reduce((sum, { references }) => sum + (references.get(hash) ?? 0), 0);
  }
}

/** A name for a worker and rank: 1 and 1n are one worker, "1" is another. */
export function nameOf({ workerId, dpRank }: WorkerWithDpRank): string {
  return `${typeof workerId === "string" ? "s" : "n"}${workerId}/${dpRank}`;
}

function change(counts: Map<bigint, number>, hash: bigint, by: number): void {
  const count = (counts.get(hash) ?? 0) + by;
  if (count === 0) counts.delete(hash);
  else counts.set(hash, count);
}

/** Throws for the first hash that is not there as often as the list has named it up to there. */
function refuseFirst(hashes: Hashes, isThere: (hash: bigint, times: number) => boolean): void {
  const named = new Map<bigint, number>();
  for (const [index, hash] of [...hashes].entries()) {
    change(named, hash, 1);
    if (!isThere(hash, named.get(hash) as number)) throw new NotBookedError(hash, index);
  }
}
