import { inspect, isDeepStrictEqual } from "node:util";
import type { Outcome, Side } from "./side.js";

/** Throws unless both values are deeply equal, faster in long loops than an assertion library. */
export function same(what: string, expected: unknown, actual: unknown): void {
  if (!isDeepStrictEqual(expected, actual)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** Throws unless a call did what the reference did. An index counts where the reference names one. */
export function sameOutcome(what: string, expected: Outcome, actual: Outcome): void {
  if ("value" in expected || "value" in actual) {
    same(what, expected, actual);
    return;
  }
  same(`${what}, code`, expected.code, actual.code);
  if (expected.index !== undefined) same(`${what}, index of ${expected.code}`, expected.index, actual.index);
}

/** Throws unless everything that can be seen of two pools is equal; `hashes` are those to look up. */
export function sameState(expected: Side, actual: Side, hashes: Iterable<bigint>): void {
  same("counters", expected.counters(), actual.counters());
  same("eviction order", expected.lru(), actual.lru());
  for (const hash of hashes) same(`prefixHit(${hash})`, expected.hit(hash), actual.hit(hash));
  for (let r = 0; r < expected.reservations.length; r++) {
    same(`size of r${r}`, expected.size(r), actual.size(r));
  }
}

function show(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 40 });
}
