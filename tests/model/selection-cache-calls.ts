import fc from "fast-check";
import type { RoutingPartition } from "../../src/selection/cache.js";
import { same } from "../support/agree.js";
import { NaiveCache, naiveCache } from "./selection-cache-naive.js";
import { type CacheOptions, type CacheSubject, type CacheUnderTest, pending } from "./selection-cache-subject.js";

// Few names and instants, so that calls meet. Of the generations a caller knows, the choice is among the latest.
const modelNames = ["", "m", "é"];
const routingGroups = ["", "g", "m"];
const ids = ["", "a", "mg", "é", "e\u0301", "😀", "\ud83d", "request-0001"];

const text = (texts: readonly string[]) => fc.constantFrom(...texts);
const partition = fc.record({ modelName: text(modelNames), routingGroup: text(routingGroups) });
const time = fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constantFrom(-5, 0.5, 3.25, 1e15, -1e15));
const bound = (max: number) => fc.oneof(fc.integer({ min: 0, max }), fc.constant(Number.POSITIVE_INFINITY));

export const options: fc.Arbitrary<CacheOptions> = fc.record({
  ttlMs: bound(8),
  maxEntries: bound(6),
  maxBytes: bound(120),
});

export type Call =
  | {
      readonly verb: "insert";
      readonly at: RoutingPartition;
      readonly id: string;
      readonly hashes: number;
      readonly loraName: string | undefined;
      readonly nowMs: number;
      readonly anchor: number | undefined;
    }
  | { readonly verb: "peek"; readonly at: RoutingPartition; readonly id: string; readonly nowMs: number }
  | { readonly verb: "remove"; readonly at: RoutingPartition; readonly id: string; readonly back: number }
  | { readonly verb: "claim" | "discard"; readonly at: RoutingPartition; readonly id: string };

const key = { at: partition, id: text(ids) };

export const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      verb: fc.constant("insert" as const),
      ...key,
      hashes: fc.integer({ min: 0, max: 9 }),
      loraName: fc.option(text(["", "adapter", "é"]), { nil: undefined }),
      nowMs: time,
      anchor: fc.option(time, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("peek" as const), ...key, nowMs: time }) },
  {
    weight: 2,
    arbitrary: fc.record({ verb: fc.constant("remove" as const), ...key, back: fc.integer({ max: 4, min: -1 }) }),
  },
  { weight: 3, arbitrary: fc.record({ verb: fc.constantFrom("claim" as const, "discard" as const), ...key }) },
);

/** Makes the calls on a cache and on the naive one, and throws at the first difference in what can be seen of both. */
export function compare<C extends CacheUnderTest>(
  subject: CacheSubject<C>,
  limits: CacheOptions,
  calls: readonly Call[],
): void {
  const cache = subject.create(limits);
  const naive = new NaiveCache(limits);
  let inserts = 0;
  for (const call of calls) {
    same("result", perform(naive, call, inserts), perform(cache, call, inserts));
    if (call.verb === "insert") inserts++;
    same("size and bytes", [naive.size, naive.totalBytes], [cache.size, cache.totalBytes]);
    same("order", naiveCache.order(naive), subject.order(cache));
    for (const { modelName, routingGroup, id } of naive.entries) {
      const at = { modelName, routingGroup };
      for (const nowMs of [0, 6]) same("peek", naive.peek(at, id, nowMs), cache.peek(at, id, nowMs));
    }
  }
}

function perform(cache: CacheUnderTest, call: Call, inserts: number): unknown {
  const { at, id } = call;
  switch (call.verb) {
    case "insert": {
      const { hashes, loraName, nowMs, anchor } = call;
      return cache.insert(id, pending(at, hashes, { loraName, islTokens: inserts }), nowMs, anchor);
    }
    case "peek":
      return cache.peek(at, id, call.nowMs);
    case "remove":
      return cache.remove(at, id, inserts - call.back);
    case "claim": {
      const peeked = cache.peek(at, id, 0);
      return peeked !== null && cache.remove(at, id, peeked.generation);
    }
    case "discard":
      return cache.discard(at, id);
  }
}

/** Makes random calls on a cache and on the naive one; fails with the shortest sequence that shows a difference. */
export function randomCalls<C extends CacheUnderTest>(
  subject: CacheSubject<C>,
  { runs, callsMax, seed }: { runs: number; callsMax: number; seed?: number },
): void {
  const calls = fc.array(call, { maxLength: callsMax, size: "max" });
  const property = fc.property(options, calls, (limits, list) => compare(subject, limits, list));
  fc.assert(property, { numRuns: runs, ...(seed === undefined ? {} : { seed, endOnFailure: true }) });
}
