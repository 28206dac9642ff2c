import type { ReplayPool } from "../../src/sim/replay.js";

interface Copy {
  readonly hash: bigint;
  references: number;
}

/** A KV cache in plain lists, as a reader would write it down, to hold the replay on real pools against. */
export class NaivePool implements ReplayPool {
  readonly #capacity: number;
  readonly #copies = new Map<number, Copy>(); // in order of caching
  readonly #pinned = new Map<object, number[]>();
  #inactive: number[] = []; // next victim first
  #ids = 0;
  isDisposed = false;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get numInactive(): number {
    return this.#inactive.length;
  }

  matchPrefix(hashes: BigUint64Array): { resident: number } {
    return { resident: this.#residentIds(hashes).length };
  }

  reserveResidentPrefix(
    candidates: BigUint64Array,
    total: number,
  ): { reservation: { length: number; freshLength: number } } | null {
    const pinned = this.#residentIds(candidates);
    const reservation = { length: total, freshLength: total - pinned.length };
    const victims = Math.max(0, reservation.freshLength - (this.#capacity - this.#copies.size));
    const evictable = this.#inactive.filter((id) => !pinned.includes(id));
    if (victims > evictable.length) return null;
    for (const id of evictable.slice(0, victims)) this.#copies.delete(id);
    this.#inactive = evictable.slice(victims);
    this.#pinned.set(reservation, pinned);
    return { reservation };
  }

  activatePrefix(reservation: object): Float64Array {
    const ids = this.#pinned.get(reservation) ?? [];
    for (const id of ids) this.#copy(id).references++;
    return Float64Array.from(ids);
  }

  allocateAllCached(_reservation: object, hashes: BigUint64Array): { ids: Float64Array } {
    const ids = Array.from(hashes, (hash) => {
      this.#copies.set(this.#ids, { hash, references: 1 });
      return this.#ids++;
    });
    return { ids: Float64Array.from(ids) };
  }

  releaseChain(ids: Float64Array): void {
    for (const id of [...ids].reverse()) {
      this.#copy(id).references--;
      if (this.#copy(id).references === 0) this.#inactive.push(id);
    }
  }

  dispose(): void {
    this.isDisposed = true;
  }

  #residentIds(hashes: BigUint64Array): number[] {
    const ids: number[] = [];
    for (const hash of hashes) {
      const oldest = [...this.#copies].find(([, copy]) => copy.hash === hash);
      if (oldest === undefined) break;
      ids.push(oldest[0]);
    }
    return ids;
  }

  #copy(id: number): Copy {
    const copy = this.#copies.get(id);
    if (copy === undefined) throw new Error(`There is no copy ${id}.`);
    return copy;
  }
}
