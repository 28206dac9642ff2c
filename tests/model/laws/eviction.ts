import { expect } from "vitest";
import { cached, idle, inactive, law, pressed, reserved } from "./law.js";

export const evictionLaws = [
  law("the copy released first is evicted first", (create) => {
    const pool = create({ capacity: 3 });
    const [one, two, three] = cached(pool, 1n, 2n, 3n) as [number, number, number];
    for (const id of [two, three, one]) pool.release(id);
    expect(inactive(pool)).toEqual([two, three, one]);
    for (const hash of [2n, 3n, 1n]) expect(pressed(pool, pool.capacity - pool.numInactive + 1)).toEqual([hash]);
  }),

  law("evicted hashes are named in order of eviction", (create) => {
    const pool = create({ capacity: 4 });
    idle(pool, 9n, 3n, 7n, 5n);
    expect(pressed(pool, 4)).toEqual([9n, 3n, 7n, 5n]);
  }),

  law("a cancelled prefix is evicted leaf before parent", (create) => {
    const pool = create({ capacity: 3 });
    const [root, branch, leaf] = idle(pool, 1n, 2n, 3n);
    pool.cancel(reserved(pool, [1n, 2n, 3n], 0).reservation);
    expect(inactive(pool)).toEqual([leaf, branch, root]);
    expect(pressed(pool, 1)).toEqual([3n]);
  }),

  law("a disposed reservation is evicted leaf before parent too", (create) => {
    const pool = create({ capacity: 2 });
    const [root, leaf] = idle(pool, 1n, 2n);
    reserved(pool, [1n, 2n], 0).reservation[Symbol.dispose]();
    expect(inactive(pool)).toEqual([leaf, root]);
  }),

  law("a released chain is evicted leaf before parent", (create) => {
    const pool = create({ capacity: 3 });
    const [root, branch, leaf] = cached(pool, 1n, 2n, 3n) as [number, number, number];
    pool.releaseChain([root, branch, leaf]);
    expect(inactive(pool)).toEqual([leaf, branch, root]);
  }),

  law("a batch is released in the order given", (create) => {
    const pool = create({ capacity: 3 });
    const [one, two, three] = cached(pool, 1n, 2n, 3n) as [number, number, number];
    pool.releaseAll(Float64Array.of(two, one, three));
    expect(inactive(pool)).toEqual([two, one, three]);
  }),

  law("a touched copy becomes the last victim, from the head, the middle and the tail", (create) => {
    const pool = create({ capacity: 3 });
    const [one, two, three] = idle(pool, 1n, 2n, 3n);
    const orders = [1n, 3n, 2n, 2n].map((hash) => {
      pool.cancel(reserved(pool, [hash], 0).reservation);
      return inactive(pool);
    });
    expect(orders).toEqual([
      [two, three, one],
      [two, one, three],
      [one, three, two],
      [one, three, two],
    ]);
  }),

  law("looking up is no touch", (create) => {
    const pool = create({ capacity: 2 });
    const before = idle(pool, 1n, 2n);
    pool.prefixHit(1n);
    pool.matchPrefix([1n, 2n]);
    expect(inactive(pool)).toEqual(before);
  }),

  law("pinning a copy in the middle keeps the order of the others", (create) => {
    const pool = create({ capacity: 4 });
    const [one, , three, four] = idle(pool, 1n, 2n, 3n, 4n);
    reserved(pool, [2n], 0);
    expect(inactive(pool)).toEqual([one, three, four]);
    expect(pressed(pool, 2)).toEqual([1n, 3n]);
  }),

  law("eviction names a hash only when its last copy goes", (create) => {
    const pool = create({ capacity: 3 });
    idle(pool, 1n, 1n, 1n);
    expect(pressed(pool, 1)).toEqual([]);
    expect(pool.prefixHit(1n)).toEqual({ isActive: false });
    expect(pressed(pool, 2)).toEqual([]);
    expect(pressed(pool, 3)).toEqual([1n]);
    expect(pool.prefixHit(1n)).toBeNull();
  }),

  law("a hash whose copies go in one reservation is named once, where the last one goes", (create) => {
    const pool = create({ capacity: 5 });
    idle(pool, 1n, 2n, 1n, 3n, 2n);
    expect(pressed(pool, 5)).toEqual([1n, 3n, 2n]);
  }),
];
