import { expect } from "vitest";
import { idle, inactive, law, pressed, privateCopy, refused, reserved } from "./law.js";

export const idLaws = [
  law("the id of a released private copy is stale", (create) => {
    const pool = create({ capacity: 1 });
    const id = privateCopy(pool);
    pool.release(id);
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.release(id));
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.cachePrivate(id, 1n));
  }),

  law("the id of an evicted copy is stale, also when its hash is back", (create) => {
    const pool = create({ capacity: 1 });
    const [old] = idle(pool, 1n) as [number];
    pressed(pool, 1);
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.release(old));
    idle(pool, 1n);
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.release(old));
    refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.cachePrivate(old, 1n));
  }),

  law("an inactive copy has no reference to release", (create) => {
    const pool = create({ capacity: 1 });
    const [id] = idle(pool, 1n) as [number];
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.release(id));
    refused(pool, "KVROUTE_NOT_REFERENCED", () => pool.releaseChain([id]), 0);
    expect(pressed(pool, 1)).toEqual([1n]);
  }),

  law("ids that no pool issued are unknown", (create) => {
    const pool = create({ capacity: 3 });
    const known = [privateCopy(pool), ...idle(pool, 1n)];
    const strange = [-1, -0, 0, 0.5, 1.5, 255, 2 ** 24, 2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53, 2 ** 63, 2 ** 64, 1e300];
    const near = known.flatMap((id) => [id + 0.5, id + 2 ** 24, id + 2 ** 32, -id, id + 2 ** 53, id + 100]);
    const all = [...strange, ...near, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const id of all.filter((id) => !known.includes(id))) {
      // a large id and a half is the id itself
      refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.release(id));
      refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.cachePrivate(id, 1n));
      refused(pool, "KVROUTE_UNKNOWN_COPY", () => pool.releaseAll(Float64Array.of(id)), 0);
    }
  }),

  law("a stale id is always detected and a retired slot never comes back", (create) => {
    const pool = create({ capacity: 2 });
    const ids = new Set<number>();
    const LIVES = 3_000; // of a block that a checked core with few generations retires again and again
    for (let life = 0; life < LIVES; life++) {
      const id = life % 3 === 0 ? (idle(pool, BigInt(life))[0] as number) : privateCopy(pool);
      if (life % 3 !== 0) pool.release(id);
      expect(ids.has(id)).toBe(false);
      ids.add(id);
    }
    const live = new Set(inactive(pool));
    for (const id of ids) {
      refused(pool, live.has(id) ? "KVROUTE_NOT_REFERENCED" : "KVROUTE_UNKNOWN_COPY", () => pool.release(id));
    }
    expect(reserved(pool, [], 2).reservation.freshLength).toBe(2);
  }),
];
