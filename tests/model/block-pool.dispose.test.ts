import { describe, expect, test } from "vitest";
import { Panic } from "../../src/abi.js";
import { BlockPool, coreOf } from "../../src/core/block-pool.js";
import { CorePanicError, type KvrouteError } from "../../src/errors.js";
import { cached, counters, idle, inactive, privateCopy, refused, reserved } from "./laws/law.js";

type Reservation = ReturnType<typeof reserved>["reservation"];

/** Every way to use a pool. */
const uses: readonly [name: string, use: (pool: BlockPool, reservation: Reservation, id: number) => unknown][] = [
  ["numActive", (pool) => pool.numActive],
  ["numActiveRefs", (pool) => pool.numActiveRefs],
  ["numInactive", (pool) => pool.numInactive],
  ["memoryBytes", (pool) => pool.memoryBytes],
  ["prefixHit", (pool) => pool.prefixHit(1n)],
  ["matchPrefix", (pool) => pool.matchPrefix([])],
  ["reserve", (pool) => pool.reserve([], 0)],
  ["reserveResidentPrefix", (pool) => pool.reserveResidentPrefix([], 0)],
  ["activatePrefix", (pool, reservation) => pool.activatePrefix(reservation)],
  ["allocatePrivate", (pool, reservation) => pool.allocatePrivate(reservation)],
  ["allocateAllPrivate", (pool, reservation) => pool.allocateAllPrivate(reservation)],
  ["allocateCached", (pool, reservation) => pool.allocateCached(reservation, 2n)],
  ["allocateAllCached", (pool, reservation) => pool.allocateAllCached(reservation, [])],
  ["cachePrivate", (pool, _, id) => pool.cachePrivate(id, 3n)],
  ["cacheAll", (pool) => pool.cacheAll([], [])],
  ["release", (pool, _, id) => pool.release(id)],
  ["releaseAll", (pool) => pool.releaseAll([])],
  ["releaseChain", (pool) => pool.releaseChain([])],
  ["cancel", (pool, reservation) => pool.cancel(reservation)],
  ["inactiveIds", (pool) => pool.inactiveIds()],
];

function code(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return (error as KvrouteError).code;
  }
}

describe("a pool that was disposed of", () => {
  for (const [name, use] of uses) {
    test(`refuses ${name}`, () => {
      const pool = new BlockPool({ capacity: 4 });
      const id = privateCopy(pool);
      const { reservation } = reserved(pool, [], 2);
      pool.dispose();
      expect(code(() => use(pool, reservation, id))).toBe("KVROUTE_DISPOSED");
    });
  }

  test("may be disposed of again, and so may its reservations", () => {
    const pool = new BlockPool({ capacity: 2 });
    const { reservation } = reserved(pool, [], 2);
    pool[Symbol.dispose]();
    pool[Symbol.dispose]();
    pool.dispose();
    reservation[Symbol.dispose]();
    reservation[Symbol.dispose]();
    expect(pool.capacity).toBe(2);
  });

  test("leaves other pools alone", () => {
    const [pool, other] = [new BlockPool({ capacity: 2 }), new BlockPool({ capacity: 2 })];
    cached(other, 1n);
    pool.dispose();
    expect(other.prefixHit(1n)).toEqual({ isActive: true });
  });
});

describe("disposing a reservation", () => {
  test("cancels what is left of it, once", () => {
    const pool = new BlockPool({ capacity: 4 });
    const [one, two] = idle(pool, 1n, 2n);
    const { reservation } = reserved(pool, [1n, 2n], 2);
    pool.allocatePrivate(reservation);
    reservation[Symbol.dispose]();
    expect(counters(pool)).toEqual([1, 1, 2]);
    expect(inactive(pool)).toEqual([two, one]);
    const again = reserved(pool, [1n], 0);
    reservation[Symbol.dispose]();
    expect(counters(pool)).toEqual([2, 1, 1]);
    pool.cancel(again.reservation);
  });

  test("closes it", () => {
    const pool = new BlockPool({ capacity: 1 });
    const { reservation } = reserved(pool, [], 1);
    reservation[Symbol.dispose]();
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.allocatePrivate(reservation));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.cancel(reservation));
  });

  test("does nothing after a cancel", () => {
    const pool = new BlockPool({ capacity: 1 });
    const { reservation } = reserved(pool, [], 1);
    pool.cancel(reservation);
    reserved(pool, [], 1);
    reservation[Symbol.dispose]();
    expect(counters(pool)).toEqual([1, 0, 0]);
  });

  test("happens at the end of a block with `using`", () => {
    using pool = new BlockPool({ capacity: 1 });
    {
      using reservation = reserved(pool, [], 1).reservation;
      expect(reservation.freshLength).toBe(1);
      expect(pool.numActive).toBe(1);
    }
    expect(pool.numActive).toBe(0);
  });
});

describe("a broken invariant", () => {
  /** Takes reserved room away behind the facade's back, so that the next allocation finds the core at odds with it. */
  function broken() {
    const pool = new BlockPool({ capacity: 4 });
    const id = privateCopy(pool);
    const { reservation } = reserved(pool, [], 2);
    coreOf(pool).exports.cancel(0, 2);
    return { pool, id, reservation };
  }

  test("stops the call that meets it, and says where it was", () => {
    const { pool, reservation } = broken();
    const panic = expect.objectContaining({ reason: Panic.Assertion, place: expect.stringMatching(/\.ts:\d+$/) });
    expect(() => pool.allocatePrivate(reservation)).toThrow(panic);
  });

  for (const [name, use] of uses) {
    test(`ends the pool: ${name} throws the same error`, () => {
      const { pool, id, reservation } = broken();
      let first: unknown;
      try {
        pool.allocatePrivate(reservation);
      } catch (error) {
        first = error;
      }
      expect(first).toBeInstanceOf(CorePanicError);
      expect(() => use(pool, reservation, id)).toThrow(first as Error);
      reservation[Symbol.dispose]();
      pool.dispose();
    });
  }

  test.each<[string, (pool: BlockPool) => unknown]>([
    ["inactiveIds", (pool) => pool.inactiveIds()],
    ["a list that needs room", (pool) => pool.matchPrefix(new BigUint64Array(5_000))],
  ])("ends the pool where %s meets it", (_, use) => {
    const pool = new BlockPool({ capacity: 4 });
    idle(pool, 1n);
    const { exports } = coreOf(pool);
    const trap = () => exports.cancel(0, 2); // nothing is reserved
    Object.defineProperty(coreOf(pool), "exports", { value: { ...exports, listInactive: trap, makeScratch: trap } });
    expect(() => use(pool)).toThrow(CorePanicError);
    expect(() => pool.numActive).toThrow(CorePanicError);
  });

  test("leaves other pools alone", () => {
    const { pool, reservation } = broken();
    const other = new BlockPool({ capacity: 2 });
    cached(other, 1n);
    expect(code(() => pool.allocatePrivate(reservation))).toBe("KVROUTE_CORE_PANIC");
    expect(other.prefixHit(1n)).toEqual({ isActive: true });
    expect(privateCopy(other)).toBeGreaterThan(0);
  });
});
