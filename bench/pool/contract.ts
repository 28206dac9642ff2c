import type { CopyIds, Hashes } from "../../src/core/keys.js";

/** What the benchmarks call of a block pool. `R` is the reservation of the implementation. */
export interface Pool<R> {
  readonly numActive: number;
  readonly numInactive: number;
  matchPrefix(hashes: Hashes): { resident: number; active: number };
  reserve(prefix: Hashes, fresh: number): { reservation: R; removed: BigUint64Array } | null;
  activatePrefix(reservation: R): Float64Array;
  allocateAllCached(reservation: R, hashes: Hashes): { ids: Float64Array; visible: number };
  releaseChain(ids: CopyIds): void;
  cancel(reservation: R): void;
  inactiveIds(): Float64Array;
}

/** Reserves or throws: the benchmarks are made so that there is always room. */
export function reserve<R>(pool: Pool<R>, prefix: Hashes, fresh: number): { reservation: R; removed: BigUint64Array } {
  const outcome = pool.reserve(prefix, fresh);
  if (outcome === null) throw new Error(`Expected room for ${fresh} blocks, got none.`);
  return outcome;
}

/** Makes blocks resident and inactive, in chains of `chain` hashes. */
export function fill<R>(pool: Pool<R>, hashes: BigUint64Array, chain: number): void {
  for (let start = 0; start < hashes.length; start += chain) {
    const part = hashes.subarray(start, start + chain);
    const { reservation } = reserve(pool, [], part.length);
    pool.releaseChain(pool.allocateAllCached(reservation, part).ids);
  }
}

/** Mixes hashes into a number that depends on each of them and on their order. */
export function fold(sum: number, hashes: BigUint64Array): number {
  const words = new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2);
  let mixed = sum | 0;
  for (const word of words) mixed = Math.imul(mixed ^ word, 0x01000193);
  return mixed >>> 0;
}
