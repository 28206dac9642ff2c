import { expect } from "vitest";
import { cached, counters, idle, inactive, law, pressed, refused, reserved } from "./law.js";

export const reservationLaws = [
  law("reserved room counts as active at once", (create) => {
    const pool = create({ capacity: 3 });
    const { reservation } = reserved(pool, [], 2);
    expect(counters(pool)).toEqual([2, 0, 0]);
    expect([reservation.length, reservation.freshLength]).toEqual([2, 2]);
  }),

  law("room that one reservation holds is not there for another", (create) => {
    const pool = create({ capacity: 3 });
    const first = reserved(pool, [], 2);
    expect(pool.reserve([], 2)).toBeNull();
    reserved(pool, [], 1);
    pool.cancel(first.reservation);
    reserved(pool, [], 2);
  }),

  law("a refused reservation changes nothing", (create) => {
    const pool = create({ capacity: 3 });
    const [one, two] = idle(pool, 1n, 2n);
    const [three] = cached(pool, 3n);
    for (const prefix of [[], [1n], [2n, 1n], [3n], [1n, 1n, 3n]]) {
      expect(pool.reserve(prefix, 3)).toBeNull();
      expect(pool.reserveResidentPrefix(prefix, prefix.length + 3)).toBeNull();
      expect(counters(pool)).toEqual([1, 1, 2]);
      expect(inactive(pool)).toEqual([one, two]);
    }
    pool.release(three as number);
    expect(pressed(pool, 3)).toEqual([1n, 2n, 3n]);
  }),

  law("a missing hash is reported before want of room", (create) => {
    const pool = create({ capacity: 2 });
    idle(pool, 1n);
    refused(pool, "KVROUTE_MISSING_PREFIX", () => pool.reserve([1n, 7n], 9), 1);
  }),

  law("the first missing hash of several is named, and none before it stays pinned", (create) => {
    const pool = create({ capacity: 3 });
    idle(pool, 1n, 2n);
    refused(pool, "KVROUTE_MISSING_PREFIX", () => pool.reserve([2n, 1n, 9n, 8n], 0), 2);
    expect(pressed(pool, 3)).toEqual([1n, 2n]);
  }),

  law("a prefix never evicts itself for its own fresh blocks", (create) => {
    const pool = create({ capacity: 2 });
    const [one] = idle(pool, 1n, 2n);
    expect(pool.reserve([1n], 2)).toBeNull();
    const { removed, reservation } = reserved(pool, [1n], 1);
    expect([...removed]).toEqual([2n]);
    expect([...pool.activatePrefix(reservation)]).toEqual([one]);
  }),

  law("only what is missing is evicted", (create) => {
    const pool = create({ capacity: 5 });
    idle(pool, 1n, 2n, 3n);
    expect([...reserved(pool, [], 2).removed]).toEqual([]);
    expect([...reserved(pool, [], 1).removed]).toEqual([1n]);
    expect([...reserved(pool, [], 2).removed]).toEqual([2n, 3n]);
  }),

  law("evictions happen when room is reserved, not when it is used", (create) => {
    const pool = create({ capacity: 1 });
    idle(pool, 1n);
    const { reservation } = reserved(pool, [], 1);
    expect(pool.prefixHit(1n)).toBeNull();
    expect(counters(pool)).toEqual([1, 0, 0]);
    pool.allocatePrivate(reservation);
    expect(counters(pool)).toEqual([1, 1, 0]);
  }),

  law("cancelling brings nothing back", (create) => {
    const pool = create({ capacity: 2 });
    idle(pool, 1n, 2n);
    expect(pressed(pool, 1)).toEqual([1n]);
    expect(pool.prefixHit(1n)).toBeNull();
    expect(pressed(pool, 2)).toEqual([2n]);
  }),

  law("an absurd number of fresh blocks is refused and overflows nothing", (create) => {
    const pool = create({ capacity: 4 });
    idle(pool, 1n);
    reserved(pool, [], 2);
    for (const fresh of [5, 2 ** 24, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1]) {
      expect(pool.reserve([], fresh)).toBeNull();
      expect(pool.reserve([1n], fresh)).toBeNull();
      expect(pool.reserveResidentPrefix([1n], fresh)).toBeNull();
      expect(counters(pool)).toEqual([2, 0, 1]);
    }
  }),

  law("a hash repeated in a prefix hides one eviction candidate only", (create) => {
    const pool = create({ capacity: 2 });
    idle(pool, 1n, 2n);
    const { removed, reservation } = reserved(pool, [1n, 1n, 1n], 1);
    expect([...removed]).toEqual([2n]);
    expect(reservation.length).toBe(4);

    const larger = create({ capacity: 5 });
    idle(larger, 1n, 2n, 3n, 4n, 5n);
    expect(larger.reserve([1n, 1n, 2n], 4)).toBeNull();
    expect([...reserved(larger, [1n, 1n, 2n], 3).removed]).toEqual([3n, 4n, 5n]);
  }),

  law("a prefix that is active hides no eviction candidate", (create) => {
    const pool = create({ capacity: 2 });
    cached(pool, 1n);
    idle(pool, 2n);
    expect([...reserved(pool, [1n], 1).removed]).toEqual([2n]);
  }),

  law("a reservation of nothing is a reservation", (create) => {
    const pool = create({ capacity: 1 });
    cached(pool, 1n);
    const { reservation, removed } = reserved(pool, [], 0);
    expect([reservation.length, removed.length]).toEqual([0, 0]);
    expect(pool.activatePrefix(reservation)).toHaveLength(0);
    pool.cancel(reservation);
    pool.cancel(reservation);
    expect(counters(pool)).toEqual([1, 1, 0]);
  }),

  law("a fresh block can be allocated once", (create) => {
    const pool = create({ capacity: 3 });
    const { reservation } = reserved(pool, [], 1);
    reserved(pool, [], 1);
    pool.allocatePrivate(reservation);
    refused(pool, "KVROUTE_RESERVATION_EXHAUSTED", () => pool.allocatePrivate(reservation));
    refused(pool, "KVROUTE_RESERVATION_EXHAUSTED", () => pool.allocateCached(reservation, 1n));
    refused(pool, "KVROUTE_RESERVATION_EXHAUSTED", () => pool.allocateAllCached(reservation, [1n]));
    expect(pool.allocateAllPrivate(reservation)).toHaveLength(0);
    expect(pool.allocateAllCached(reservation, [])).toEqual({ ids: new Float64Array(0), visible: 0 });
  }),

  law("a cancelled reservation is closed to every verb", (create) => {
    const pool = create({ capacity: 2 });
    idle(pool, 1n);
    const { reservation } = reserved(pool, [1n], 1);
    pool.cancel(reservation);
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.cancel(reservation));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.activatePrefix(reservation));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.allocatePrivate(reservation));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.allocateAllPrivate(reservation));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.allocateCached(reservation, 1n));
    refused(pool, "KVROUTE_RESERVATION_CLOSED", () => pool.allocateAllCached(reservation, [1n]));
    expect([reservation.length, reservation.freshLength]).toEqual([0, 0]);
  }),

  law("a reservation of another pool is refused by every verb, and stays good in its own", (create) => {
    const [pool, other] = [create({ capacity: 3 }), create({ capacity: 3 })];
    for (const each of [pool, other]) idle(each, 1n);
    reserved(pool, [1n], 2);
    const { reservation } = reserved(other, [1n], 2);
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.cancel(reservation));
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.activatePrefix(reservation));
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.allocatePrivate(reservation));
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.allocateAllPrivate(reservation));
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.allocateCached(reservation, 1n));
    refused(pool, "KVROUTE_FOREIGN_RESERVATION", () => pool.allocateAllCached(reservation, [1n]));
    expect(other.activatePrefix(reservation)).toHaveLength(1);
    expect(other.allocateAllPrivate(reservation)).toHaveLength(2);
    expect(counters(other)).toEqual([3, 3, 0]);
  }),

  law("reserveResidentPrefix pins up to the first gap and sets the rest of the total aside", (create) => {
    const pool = create({ capacity: 9 });
    const [one, two] = idle(pool, 1n, 2n, 4n);
    const outcome = pool.reserveResidentPrefix([1n, 2n, 3n, 4n], 5);
    expect([outcome?.reservation.length, outcome?.reservation.freshLength]).toEqual([5, 3]);
    expect([...(outcome?.removed ?? [])]).toEqual([]);
    expect(outcome && [...pool.activatePrefix(outcome.reservation)]).toEqual([one, two]);
    expect(counters(pool)).toEqual([5, 2, 1]);
  }),

  law("reserveResidentPrefix may evict what stands behind the gap", (create) => {
    const pool = create({ capacity: 4 });
    idle(pool, 4n, 1n, 2n);
    const outcome = pool.reserveResidentPrefix([1n, 2n, 3n, 4n], 4);
    expect(outcome && [...outcome.removed]).toEqual([4n]);
    expect(outcome?.reservation.freshLength).toBe(2);
  }),
];
