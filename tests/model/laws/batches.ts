import { expect } from "vitest";
import { cached, counters, idle, inactive, law, privateCopy, refused, reserved } from "./law.js";

export const batchLaws = [
  law("a batch allocates all that is left of the fresh part", (create) => {
    const pool = create({ capacity: 4 });
    const { reservation } = reserved(pool, [], 4);
    const first = pool.allocatePrivate(reservation);
    const rest = pool.allocateAllPrivate(reservation);
    expect(new Set([first, ...rest]).size).toBe(4);
    expect(reservation.length).toBe(0);
    expect(counters(pool)).toEqual([4, 4, 0]);
  }),

  law("a batch of hashes may leave room for later", (create) => {
    const pool = create({ capacity: 5 });
    const { reservation } = reserved(pool, [], 5);
    const { ids, visible } = pool.allocateAllCached(reservation, [1n, 2n, 1n]);
    expect([ids.length, visible, reservation.freshLength]).toEqual([3, 2, 2]);
    expect(pool.allocateAllCached(reservation, BigUint64Array.of(2n, 3n)).visible).toBe(1);
    expect(counters(pool)).toEqual([5, 5, 0]);
  }),

  law("more hashes than room are refused whole", (create) => {
    const pool = create({ capacity: 3 });
    const { reservation } = reserved(pool, [], 2);
    refused(pool, "KVROUTE_RESERVATION_EXHAUSTED", () => pool.allocateAllCached(reservation, [1n, 2n, 3n]));
    expect(pool.prefixHit(1n)).toBeNull();
    expect(reservation.freshLength).toBe(2);
  }),

  law("cacheAll counts the hashes that became visible, each once", (create) => {
    const pool = create({ capacity: 5 });
    cached(pool, 7n);
    const ids = pool.allocateAllPrivate(reserved(pool, [], 4).reservation);
    expect(pool.cacheAll(ids, [7n, 8n, 8n, 9n])).toBe(2);
    expect(pool.matchPrefix([7n, 8n, 9n])).toEqual({ resident: 3, active: 3 });
    pool.releaseAll(ids);
    expect(inactive(pool)).toEqual([...ids]);
  }),

  law("cacheAll is checked whole before anything changes, and names the first wrong copy", (create) => {
    const pool = create({ capacity: 4 });
    const [one, two] = [privateCopy(pool), privateCopy(pool)];
    const [held] = cached(pool, 9n) as [number];
    const gone = privateCopy(pool);
    pool.release(gone);
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.cacheAll([one, two, gone], [1n, 2n, 3n]), 2);
    refused(pool, "KVROUTE_ALREADY_CACHED", () => pool.cacheAll([one, held, gone], [1n, 2n, 3n]), 1);
    refused(pool, "KVROUTE_DUPLICATE_COPY", () => pool.cacheAll([two, one, two], [1n, 2n, 3n]), 2);
    refused(pool, "KVROUTE_ARGUMENT_RANGE", () => pool.cacheAll([one, two], [1n]));
    refused(pool, "KVROUTE_ARGUMENT_RANGE", () => pool.cacheAll([one, two], [1n, -1n]));
    expect([1n, 2n, 3n].map((hash) => pool.prefixHit(hash))).toEqual([null, null, null]);
    expect(pool.cacheAll([one, two], [1n, 2n])).toBe(2);
  }),

  law("releases are checked whole before anything changes, and name the wrong copy", (create) => {
    const pool = create({ capacity: 5 });
    const [one, two] = [privateCopy(pool), privateCopy(pool)];
    const [held] = cached(pool, 9n) as [number];
    const [free] = idle(pool, 8n) as [number];
    const gone = privateCopy(pool);
    pool.release(gone);
    for (const release of ["releaseAll", "releaseChain"] as const) {
      refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool[release]([one, gone, two]), 1);
      refused(pool, "KVROUTE_NOT_REFERENCED", () => pool[release]([one, held, free]), 2);
    }
    refused(pool, "KVROUTE_DUPLICATE_COPY", () => pool.releaseAll([two, one, two]), 2);
    refused(pool, "KVROUTE_DUPLICATE_COPY", () => pool.releaseChain([two, one, two]), 0);
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.releaseAll([held, one, held]), 2);
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.releaseChain([held, one, held]), 0);
    pool.releaseChain([one, two, held]);
    expect(counters(pool)).toEqual([0, 0, 2]);
  }),

  law("a cached copy may be released in one batch as often as it is referenced", (create) => {
    const pool = create({ capacity: 2 });
    const [one, two] = cached(pool, 1n, 2n) as [number, number];
    pool.activatePrefix(reserved(pool, [1n, 1n], 0).reservation);
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.releaseAll([one, one, two, one, one]), 4);
    pool.releaseAll([one, one, two, one]);
    expect(inactive(pool)).toEqual([two, one]);
  }),

  law("empty batches do nothing", (create) => {
    const pool = create({ capacity: 1 });
    expect(pool.cacheAll([], [])).toBe(0);
    pool.releaseAll([]);
    pool.releaseChain(new Float64Array(0));
    expect(pool.reserveResidentPrefix([], 0)?.reservation.length).toBe(0);
    expect(counters(pool)).toEqual([0, 0, 0]);
  }),

  law("arguments are read only and may be parts of larger arrays", (create) => {
    const pool = create({ capacity: 4 });
    const wide = BigUint64Array.of(9n, 1n, 2n, 3n, 9n);
    const ids = pool.allocateAllCached(reserved(pool, [], 3).reservation, wide.subarray(1, 4)).ids;
    const padded = Float64Array.of(-1, ...ids, -1);
    pool.releaseChain(padded.subarray(1, 4));
    expect([...padded]).toEqual([-1, ...ids, -1]);
    const { reservation } = reserved(pool, [1n, 2n], 0);
    expect(pool.activatePrefix(reservation)).toEqual(ids.slice(0, 2));
    expect([...wide]).toEqual([9n, 1n, 2n, 3n, 9n]);
  }),

  law("results belong to the caller: later calls do not change them", (create) => {
    const pool = create({ capacity: 3 });
    idle(pool, 1n, 2n, 3n);
    const { removed } = reserved(pool, [], 2);
    const last = pool.inactiveIds();
    const pinned = reserved(pool, [3n], 0).reservation;
    const ids = pool.activatePrefix(pinned);
    const kept = [[...removed], [...last], [...ids]];
    pool.matchPrefix([7n, 8n, 9n]);
    pool.releaseAll(ids);
    for (let i = 0; i < 400; i++) pool.matchPrefix(new BigUint64Array(i * 3).fill(0xffn));
    expect([[...removed], [...last], [...ids]]).toEqual(kept);
    ids.fill(-1);
    removed.fill(0n);
    expect(pool.inactiveIds()).toEqual(last);
  }),

  law("a result may be given away to another thread, and the pool keeps what it holds", (create) => {
    const pool = create({ capacity: 60 });
    const hashes = BigUint64Array.from({ length: 20 }, (_, i) => BigInt(i));
    const { ids } = pool.allocateAllCached(reserved(pool, [], 20).reservation, hashes);
    const kept = [...ids];
    pool.releaseChain(ids);
    const { reservation } = reserved(pool, [...hashes], 20);
    const fresh = give(pool.allocateAllPrivate(reservation));
    expect(reservation.length).toBe(20);
    pool.releaseAll(fresh);
    expect([...pool.activatePrefix(reservation)]).toEqual(kept);
    pool.releaseChain(kept);
    expect(give(pool.inactiveIds())).toEqual(Float64Array.from(kept.reverse()));
    expect(give(reserved(pool, [], 50).removed)).toEqual(hashes.slice(10).reverse());
  }),

  law("a copy of a result stays when another result is given away, whose buffer it may have shared", (create) => {
    const pool = create({ capacity: 60 });
    const ids = pool.allocateAllPrivate(reserved(pool, [], 20).reservation).slice();
    const { reservation, removed } = reserved(pool, [], 20);
    const others = pool.allocateAllPrivate(reservation);
    give(others);
    if (removed.byteLength > 0) give(removed);
    expect(ids).toHaveLength(20);
    pool.releaseAll(ids);
    expect(pool.allocateAllPrivate(reserved(pool, [], 20).reservation)).toHaveLength(20);
  }),

  law("an empty result may be given away as often as there is one", (create) => {
    const pool = create({ capacity: 4 });
    for (let i = 0; i < 2; i++) {
      const { reservation, removed } = reserved(pool, [], 0);
      expect(give(removed)).toHaveLength(0);
      expect(give(pool.activatePrefix(reservation))).toHaveLength(0);
      expect(give(pool.allocateAllPrivate(reservation))).toHaveLength(0);
      expect(give(pool.inactiveIds())).toHaveLength(0);
    }
  }),
];

/** Moves an array's buffer, as `postMessage` does with what it is told to transfer. */
function give<T extends Float64Array | BigUint64Array>(array: T): T {
  return structuredClone(array, { transfer: [array.buffer as ArrayBuffer] });
}
