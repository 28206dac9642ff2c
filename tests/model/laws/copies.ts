import { expect } from "vitest";
import type { PoolUnderTest } from "../../support/pool-under-test.js";
import { cached, counters, idle, law, pressed, privateCopy, reserved } from "./law.js";

/** The copy that a lookup finds: a reservation pins it and names it when activated. */
function found(pool: PoolUnderTest, hash: bigint): number | undefined {
  return pool.activatePrefix(reserved(pool, [hash], 0).reservation)[0];
}

export const copyLaws = [
  law("a hash may have several copies, and each takes a block", (create) => {
    const pool = create({ capacity: 3 });
    const ids = cached(pool, 1n, 1n, 1n);
    expect(new Set(ids).size).toBe(3);
    expect(counters(pool)).toEqual([3, 3, 0]);
    expect(pool.reserve([], 1)).toBeNull();
  }),

  law("only the first resident copy makes a hash visible", (create) => {
    const pool = create({ capacity: 4 });
    const { reservation } = reserved(pool, [], 2);
    expect(pool.allocateCached(reservation, 1n).becameVisible).toBe(true);
    expect(pool.allocateCached(reservation, 1n).becameVisible).toBe(false);
    expect(pool.cachePrivate(privateCopy(pool), 1n)).toBe(false);
    expect(pool.cachePrivate(privateCopy(pool), 2n)).toBe(true);
  }),

  law("a hash that was evicted becomes visible again", (create) => {
    const pool = create({ capacity: 1 });
    idle(pool, 1n);
    expect(pool.allocateCached(reserved(pool, [], 1).reservation, 1n).becameVisible).toBe(true);
  }),

  law("lookups use the oldest resident copy, also if a younger one is active", (create) => {
    const pool = create({ capacity: 2 });
    const [old] = cached(pool, 1n, 1n);
    pool.release(old as number);
    expect(pool.prefixHit(1n)).toEqual({ isActive: false });
    expect(pool.matchPrefix([1n])).toEqual({ resident: 1, active: 0 });
    expect(found(pool, 1n)).toBe(old);
  }),

  law("age of a copy counts from its caching, not from its allocation", (create) => {
    const pool = create({ capacity: 2 });
    const [first, second] = [privateCopy(pool), privateCopy(pool)];
    pool.cachePrivate(second, 1n);
    pool.cachePrivate(first, 1n);
    expect(found(pool, 1n)).toBe(second);
  }),

  law("when the oldest copy goes, the next oldest takes its place", (create) => {
    const pool = create({ capacity: 3 });
    const [old, next, young] = cached(pool, 1n, 1n, 1n) as [number, number, number];
    for (const id of [old, young, next]) pool.release(id);
    expect(pressed(pool, 1)).toEqual([]);
    expect(found(pool, 1n)).toBe(next);
  }),

  law("the order of the copies survives the loss of one in the middle", (create) => {
    const pool = create({ capacity: 4 });
    const [a, b, c, d] = cached(pool, 1n, 1n, 1n, 1n) as [number, number, number, number];
    for (const id of [b, a, d, c]) pool.release(id);
    expect(pressed(pool, 1)).toEqual([]);
    expect(found(pool, 1n)).toBe(a);
    pool.release(a); // now behind d and c
    expect(pool.inactiveIds()).toEqual(Float64Array.of(d, c, a));
    pool.cancel(reserved(pool, [1n], 2).reservation); // d goes: a is the oldest and pinned meanwhile
    expect(found(pool, 1n)).toBe(a);
  }),

  law("the youngest copy may go first", (create) => {
    const pool = create({ capacity: 3 });
    const [old, middle, young] = cached(pool, 1n, 1n, 1n) as [number, number, number];
    for (const id of [young, old]) pool.release(id);
    expect(pressed(pool, 1)).toEqual([]);
    expect(pool.cachePrivate(privateCopy(pool), 1n)).toBe(false);
    pool.release(middle);
    expect(pressed(pool, 1)).toEqual([]); // old
    expect(found(pool, 1n)).toBe(middle);
  }),

  law("hashes that are equal in one half, or as doubles, are different", (create) => {
    const hashes = [0n, 1n, 1n << 32n, 1n << 63n, (1n << 32n) | 1n, (1n << 64n) - 1n, (1n << 53n) + 1n, 1n << 53n];
    const pool = create({ capacity: hashes.length });
    const ids = hashes.map((hash) => {
      expect(pool.prefixHit(hash)).toBeNull();
      return cached(pool, hash)[0];
    });
    expect(hashes.map((hash) => found(pool, hash))).toEqual(ids);
  }),

  law("matchPrefix counts up to the first gap, and of those the ones that somebody holds", (create) => {
    const pool = create({ capacity: 5 });
    const [, two] = cached(pool, 1n, 2n, 3n, 5n);
    pool.release(two as number);
    expect(pool.matchPrefix([1n, 2n, 3n, 4n, 5n])).toEqual({ resident: 3, active: 2 });
    expect(pool.matchPrefix(BigUint64Array.of(2n, 2n, 1n))).toEqual({ resident: 3, active: 1 });
    expect(pool.matchPrefix([4n, 1n])).toEqual({ resident: 0, active: 0 });
    expect(pool.matchPrefix([])).toEqual({ resident: 0, active: 0 });
  }),

  law("pools share nothing", (create) => {
    const [pool, other] = [create({ capacity: 2 }), create({ capacity: 2 })];
    cached(pool, 1n, 2n);
    expect([other.prefixHit(1n), ...counters(other)]).toEqual([null, 0, 0, 0]);
    idle(other, 3n);
    expect(pool.prefixHit(3n)).toBeNull();
  }),
];
