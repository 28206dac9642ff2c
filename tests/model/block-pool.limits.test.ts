import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NARROW, narrowPool } from "../support/narrow.js";
import { scaled } from "../support/scale.js";
import { cached, counters, inactive, privateCopy, refused, reserved } from "./laws/law.js";
import { randomWalk } from "./random-walk.js";
import { small } from "./spaces.js";

const COPIES = NARROW.slots * NARROW.lives;

describe("ids are never issued twice", () => {
  test("when all are spent, reserving says so and everything else goes on", () => {
    const pool = narrowPool.create({ capacity: 2 });
    const held = cached(pool, 1n)[0] as number;
    const ids = new Set([held]);
    while (ids.size < COPIES - NARROW.lives) {
      const id = privateCopy(pool);
      ids.add(id);
      pool.release(id);
    }
    const last = privateCopy(pool);
    expect(ids.add(last).size).toBe(COPIES - 1);
    expect(pool.reserve([], 1)).toBeNull();
    pool.release(held);
    const { removed, reservation } = reserved(pool, [], 1); // the slot of the victim has a life left
    expect([...removed]).toEqual([1n]);
    const heir = pool.allocateCached(reservation, 2n).id;
    expect(ids.add(heir).size).toBe(COPIES);
    pool.release(last);

    refused(pool, "KVROUTE_IDS_EXHAUSTED", () => pool.reserve([], 1));
    refused(pool, "KVROUTE_IDS_EXHAUSTED", () => pool.reserve([2n], 1));
    refused(pool, "KVROUTE_IDS_EXHAUSTED", () => pool.reserveResidentPrefix([2n, 3n], 2));
    expect([...pool.activatePrefix(reserved(pool, [2n], 0).reservation)]).toEqual([heir]);
    pool.releaseAll([heir, heir]);
    expect(inactive(pool)).toEqual([heir]);
    narrowPool.verify(pool);
  });

  test("a reservation does not count on slots that its own evictions retire", () => {
    const pool = narrowPool.create({ capacity: NARROW.slots });
    for (let life = 0; life < NARROW.lives; life++) {
      for (const hash of [1n, 2n, 3n]) {
        const five = Array.from({ length: NARROW.slots / 3 }, () => hash);
        pool.releaseAll(pool.allocateAllCached(reserved(pool, [], five.length).reservation, five).ids);
      }
    }
    expect(pool.numInactive).toBe(NARROW.slots);
    refused(pool, "KVROUTE_IDS_EXHAUSTED", () => pool.reserve([], 1));
    refused(pool, "KVROUTE_IDS_EXHAUSTED", () => pool.reserve([3n], 1));
    expect(pool.matchPrefix([1n, 2n, 3n])).toEqual({ resident: 3, active: 0 });
    narrowPool.verify(pool);
  });
});

describe("every slot number is used before ids run out", () => {
  for (let blocks = 1; blocks < NARROW.references; blocks++) {
    test(`by requests of ${blocks} blocks, whatever the capacity`, () => {
      for (let capacity = blocks; capacity <= NARROW.slots; capacity++) {
        const pool = narrowPool.create({ capacity });
        const issued = spend(() => {
          const ids = pool.allocateAllPrivate(reserved(pool, [], blocks).reservation);
          pool.releaseAll(ids);
          return ids;
        });
        // What is left are lives of fewer slots than a request needs at once.
        expect(issued).toBeGreaterThanOrEqual(COPIES - NARROW.lives * (blocks - 1));
        narrowPool.verify(pool);
      }
    });
  }
});

/** Makes requests until ids run out. Returns how many there were, all different. */
function spend(request: () => Float64Array): number {
  const ids = new Set<number>();
  let issued = 0;
  try {
    while (issued <= COPIES) {
      for (const id of request()) {
        ids.add(id);
        issued++;
      }
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "KVROUTE_IDS_EXHAUSTED" });
  }
  expect(ids.size).toBe(issued);
  return issued;
}

describe("references and pins are counted together", () => {
  test("up to their limit and no further", () => {
    const pool = narrowPool.create({ capacity: 3 });
    cached(pool, 1n);
    const most = Array.from({ length: NARROW.references - 1 }, () => 1n);
    refused(pool, "KVROUTE_REFERENCES_EXHAUSTED", () => pool.reserve([...most, 1n], 0));
    refused(pool, "KVROUTE_REFERENCES_EXHAUSTED", () => pool.reserve(most, 1));
    refused(pool, "KVROUTE_REFERENCES_EXHAUSTED", () => pool.reserveResidentPrefix(most, NARROW.references));
    const { reservation } = reserved(pool, most, 0);
    refused(pool, "KVROUTE_REFERENCES_EXHAUSTED", () => pool.reserve([1n], 0));
    pool.activatePrefix(reservation);
    expect(counters(pool)).toEqual([1, NARROW.references, 0]);
    refused(pool, "KVROUTE_REFERENCES_EXHAUSTED", () => pool.reserve([], 1));
    narrowPool.verify(pool);
  });

  test("a reservation that is refused for want of room is refused for nothing else", () => {
    const pool = narrowPool.create({ capacity: 1 });
    cached(pool, 1n);
    expect(
      pool.reserve(
        Array.from({ length: NARROW.references }, () => 1n),
        1,
      ),
    ).toBeNull();
  });
});

test("a pool that runs out of ids and references does what the naive model does until then", () => {
  const memory = fc.constant(2 ** 32);
  const space = { ...small, capacity: fc.integer({ min: 1, max: 12 }) };
  randomWalk(narrowPool, { space, memory, runs: scaled(600), commandsMax: 80 });
});
