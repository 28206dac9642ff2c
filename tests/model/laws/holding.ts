import { expect } from "vitest";
import { cached, counters, idle, inactive, law, pressed, privateCopy, refused, reserved } from "./law.js";

export const holdingLaws = [
  law("a pinned copy is active and has no reference", (create) => {
    const pool = create({ capacity: 2 });
    const [one] = idle(pool, 1n);
    reserved(pool, [1n], 0);
    expect(counters(pool)).toEqual([1, 0, 0]);
    expect(pool.prefixHit(1n)).toEqual({ isActive: true });
    expect(pool.matchPrefix([1n])).toEqual({ resident: 1, active: 1 });
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.release(one as number));
  }),

  law("a copy that is pinned or referenced is never evicted", (create) => {
    const pool = create({ capacity: 3 });
    idle(pool, 1n, 2n);
    cached(pool, 3n);
    reserved(pool, [2n], 0);
    expect(pool.reserve([], 2)).toBeNull();
    expect(pressed(pool, 1)).toEqual([1n]);
  }),

  law("a released copy that is still pinned is not evictable", (create) => {
    const pool = create({ capacity: 1 });
    const [one] = cached(pool, 1n);
    const { reservation } = reserved(pool, [1n], 0);
    pool.release(one as number);
    expect(counters(pool)).toEqual([1, 0, 0]);
    expect(pool.reserve([], 1)).toBeNull();
    pool.cancel(reservation);
    expect(counters(pool)).toEqual([0, 0, 1]);
  }),

  law("a cancelled prefix that is still referenced is not evictable", (create) => {
    const pool = create({ capacity: 1 });
    const [one] = cached(pool, 1n);
    pool.cancel(reserved(pool, [1n], 0).reservation);
    expect(counters(pool)).toEqual([1, 1, 0]);
    pool.release(one as number);
    expect(counters(pool)).toEqual([0, 0, 1]);
  }),

  law("activation turns pins into references, head to tail", (create) => {
    const pool = create({ capacity: 3 });
    const [one, two, three] = idle(pool, 1n, 2n, 3n);
    const { reservation } = reserved(pool, [3n, 1n, 2n], 0);
    expect([...pool.activatePrefix(reservation)]).toEqual([three, one, two]);
    expect(counters(pool)).toEqual([3, 3, 0]);
    expect(reservation.length).toBe(0);
  }),

  law("a second activation gives nothing", (create) => {
    const pool = create({ capacity: 2 });
    idle(pool, 1n);
    const { reservation } = reserved(pool, [1n], 1);
    pool.activatePrefix(reservation);
    expect(pool.activatePrefix(reservation)).toHaveLength(0);
    expect(counters(pool)).toEqual([2, 1, 0]);
  }),

  law("a hash repeated in a prefix gives one reference an occurrence", (create) => {
    const pool = create({ capacity: 1 });
    const [one] = idle(pool, 1n) as [number];
    const { reservation } = reserved(pool, [1n, 1n, 1n], 0);
    expect([...pool.activatePrefix(reservation)]).toEqual([one, one, one]);
    expect(pool.numActiveRefs).toBe(3);
    pool.releaseAll([one, one, one]);
    expect(counters(pool)).toEqual([0, 0, 1]);
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.release(one));
  }),

  law("cancelling after activation gives back the unused room alone", (create) => {
    const pool = create({ capacity: 4 });
    idle(pool, 1n);
    const { reservation } = reserved(pool, [1n], 3);
    pool.activatePrefix(reservation);
    pool.allocatePrivate(reservation);
    pool.cancel(reservation);
    expect(counters(pool)).toEqual([2, 2, 0]);
    reserved(pool, [], 2);
    expect(pool.reserve([], 1)).toBeNull();
  }),

  law("a copy that many hold is evictable after the last release", (create) => {
    const pool = create({ capacity: 1 });
    const [one] = cached(pool, 1n) as [number];
    for (let i = 0; i < 3; i++) pool.activatePrefix(reserved(pool, [1n], 0).reservation);
    for (let refs = 4; refs > 0; refs--) {
      expect(counters(pool)).toEqual([1, refs, 0]);
      pool.release(one);
    }
    expect(inactive(pool)).toEqual([one]);
  }),

  law("a private copy gives its room back at once and is never evictable", (create) => {
    const pool = create({ capacity: 1 });
    const id = privateCopy(pool);
    expect(counters(pool)).toEqual([1, 1, 0]);
    pool.release(id);
    expect(counters(pool)).toEqual([0, 0, 0]);
    expect(pressed(pool, 1)).toEqual([]);
  }),

  law("caching a private copy keeps its id, its block and its reference", (create) => {
    const pool = create({ capacity: 1 });
    const id = privateCopy(pool);
    expect(pool.prefixHit(1n)).toBeNull();
    expect(pool.cachePrivate(id, 1n)).toBe(true);
    expect(counters(pool)).toEqual([1, 1, 0]);
    pool.release(id);
    expect(inactive(pool)).toEqual([id]);
  }),

  law("a copy is cached once", (create) => {
    const pool = create({ capacity: 2 });
    const [held, free] = [cached(pool, 1n), idle(pool, 2n)].flat() as [number, number];
    for (const id of [held, free]) {
      for (const hash of [1n, 2n, 3n]) {
        refused(pool, "KVROUTE_ALREADY_CACHED", () => pool.cachePrivate(id, hash));
      }
    }
    expect(pool.prefixHit(3n)).toBeNull();
  }),
];
