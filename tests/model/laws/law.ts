import { expect } from "vitest";
import type { PoolOptions, PoolUnderTest, ReserveOutcomeUnderTest } from "../../support/pool-under-test.js";

/** A rule of the pool as a sentence, and an example or property that fails where the rule is broken. */
export interface Law {
  readonly title: string;
  readonly holds: (create: (options: PoolOptions) => PoolUnderTest) => void;
}

export function law(title: string, holds: Law["holds"]): Law {
  return { title, holds };
}

/** Reserves, or fails the test. */
export function reserved(pool: PoolUnderTest, prefix: readonly bigint[], fresh: number): ReserveOutcomeUnderTest {
  const outcome = pool.reserve(prefix, fresh);
  if (outcome === null) throw new Error(`There is no room for ${fresh} blocks beside [${prefix.join(", ")}].`);
  return outcome;
}

/** Allocates a cached copy for each hash, with a reference each. Returns their ids. */
export function cached(pool: PoolUnderTest, ...hashes: readonly bigint[]): number[] {
  const { reservation } = reserved(pool, [], hashes.length);
  return hashes.map((hash) => pool.allocateCached(reservation, hash).id);
}

/** Caches a copy for each hash and releases all in this order: the first is the next victim. Returns their ids. */
export function idle(pool: PoolUnderTest, ...hashes: readonly bigint[]): number[] {
  const ids = cached(pool, ...hashes);
  for (const id of ids) pool.release(id);
  return ids;
}

/** Allocates a private copy. */
export function privateCopy(pool: PoolUnderTest): number {
  return pool.allocatePrivate(reserved(pool, [], 1).reservation);
}

/** Makes room for so many blocks and gives it back. Returns the hashes that went. */
export function pressed(pool: PoolUnderTest, fresh: number): bigint[] {
  const { reservation, removed } = reserved(pool, [], fresh);
  pool.cancel(reservation);
  return [...removed];
}

export function counters(pool: PoolUnderTest): [active: number, refs: number, inactive: number] {
  return [pool.numActive, pool.numActiveRefs, pool.numInactive];
}

export function inactive(pool: PoolUnderTest): number[] {
  return [...pool.inactiveIds()];
}

/** Expects a call to be refused with a code, at an index where one is given, and to change nothing that can be seen. */
export function refused(pool: PoolUnderTest, code: string, call: () => unknown, index?: number): void {
  const before = [counters(pool), inactive(pool)];
  expect(call).toThrow(expect.objectContaining(index === undefined ? { code } : { code, index }));
  expect([counters(pool), inactive(pool)]).toEqual(before);
}
