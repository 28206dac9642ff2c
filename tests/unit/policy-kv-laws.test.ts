import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BookedLoad } from "../../src/selection/load.js";
import {
  type Candidate,
  type Choice,
  kv,
  type PolicyContext,
  type PolicyTerms,
  type RoutingRequest,
} from "../../src/selection/policy.js";
import { MapBlockBook } from "../model/load-map-book.js";
import { scaled } from "../support/scale.js";
import { BLOCK_TOKENS, candidate, type Figures, noChance, prompt, seeded } from "./policy-stage.js";

// What kv promises, whatever the fleet looks like.

const BLOCKS = 12;

/** A worker with so many prefills in its queue; an idle one has none. */
const figures = (queue: fc.Arbitrary<number>): fc.Arbitrary<Figures> =>
  fc
    .record({
      activePrefills: queue,
      tokens: fc.nat(9_000),
      headTokens: fc.nat(3_000),
      headSinceMs: fc.nat(1_000),
      tokensPerMs: fc.double({ min: 8, max: 12, noNaN: true }), // all within the band of equal speeds
      endedPrefills: fc.nat(20),
      recentTokens: fc.nat(5_000),
      overlapBlocks: fc.nat(BLOCKS),
    })
    .map(({ tokens, ...rest }) => {
      if (rest.activePrefills === 0) return { ...rest, headTokens: 0, activePrefillTokens: 0 };
      return { ...rest, activePrefillTokens: rest.headTokens + tokens };
    });

const fleetOf = (queues: fc.Arbitrary<number>, most = 7): fc.Arbitrary<Candidate[]> =>
  fc
    .array(figures(queues), { minLength: 1, maxLength: most })
    .map((list) => list.map((one, id) => candidate({ ...one, id })));

const anyFleet = fleetOf(fc.nat(6));

const contexts: fc.Arbitrary<Partial<PolicyContext>> = fc.record({
  nowMs: fc.nat(2_000),
  hotBlocks: fc.nat(BLOCKS),
  averageMissedTokens: fc.nat(4_000),
});

const requests: fc.Arbitrary<RoutingRequest> = fc
  .tuple(fc.nat(BLOCK_TOKENS - 1), fc.option(fc.nat(6), { nil: undefined }))
  .map(([partial, home]) =>
    prompt(BLOCKS, {
      promptTokens: BLOCKS * BLOCK_TOKENS + partial,
      home: home === undefined ? undefined : { workerId: home, dpRank: 0 },
    }),
  );

const missOf = (one: Candidate, of: RoutingRequest): number =>
  Math.max(1, of.promptTokens - one.overlapBlocks * of.blockTokens);

const waitOf = ({ load }: Candidate, nowMs: number): number =>
  load.activePrefillTokens - Math.min(load.headTokens, load.tokensPerMs * Math.max(0, nowMs - load.headSinceMs));

describe("kv", () => {
  test("with idle peers lets nobody wait longer than (1 + base) times the prefill that this spares", () => {
    const fleets = fc
      .tuple(fleetOf(fc.constant(0), 4), fleetOf(fc.nat(6), 4))
      .filter(([idle, others]) => idle.length >= others.length) // so that the typical queue is empty
      .map(([idle, others]) =>
        [...others, ...idle].map((one, id) => ({ ...one, worker: { workerId: id, dpRank: 0 } })),
      );
    const bases = fc.constantFrom(undefined, 0, 0.5, 2, 7);
    fc.assert(
      fc.property(fleets, requests, contexts, bases, fc.nat(), (workers, of, context, base, seed) => {
        const all = seeded(seed, context);
        const { index } = kv({ baseTax: base }).choose(workers, of, all);
        const one = workers[index] as Candidate;
        for (const idle of workers.filter(({ load }) => load.activePrefills === 0)) {
          const spared = Math.max(0, missOf(idle, of) - missOf(one, of));
          const margin = 0.2 * all.averageMissedTokens;
          const most = (1 + (base ?? 2)) * spared + margin; // three times by default
          expect(waitOf(one, all.nowMs)).toBeLessThanOrEqual(most + 1e-6);
        }
      }),
      { numRuns: scaled(3_000) },
    );
  });

  test("does not decide by blocks that every worker holds: a shared system prompt cancels out", () => {
    fc.assert(
      fc.property(anyFleet, requests, contexts, fc.nat(20), fc.nat(), (workers, of, context, shared, seed) => {
        const withShared = workers.map((one) => ({ ...one, overlapBlocks: one.overlapBlocks + shared }));
        const longer = {
          ...prompt(BLOCKS + shared, { home: of.home }),
          promptTokens: of.promptTokens + shared * BLOCK_TOKENS,
        };
        const hotBlocks = (context.hotBlocks ?? 0) + shared;
        const before = kv().choose(workers, of, seeded(seed, context));
        expect(kv().choose(withShared, longer, seeded(seed, { ...context, hotBlocks }))).toEqual(before);
      }),
      { numRuns: scaled(1_000) },
    );
  });

  test("does not tax more when the longest queue grows, however long it is", () => {
    const fleets = anyFleet.filter((workers) => workers.length > 1);
    fc.assert(
      fc.property(fleets, requests, (workers, of) => {
        const taxOf = (list: readonly Candidate[]): unknown => explain(list, of, {}).terms[0]?.["tax"];
        const longest = Math.max(...workers.map(({ load }) => load.activePrefills));
        const worst = workers.findIndex(({ load }) => load.activePrefills === longest);
        const worse = workers.map((one, at) =>
          at === worst ? { ...one, load: { ...one.load, activePrefills: 1_000_000 } } : one,
        );
        expect(taxOf(worse)).toBe(taxOf(workers));
      }),
      { numRuns: scaled(500) },
    );
  });

  test("as latency-first is pure time to the first token while the typical worker has no queue", () => {
    fc.assert(
      fc.property(anyFleet, requests, contexts, fc.nat(), (workers, of, context, seed) => {
        const policy = kv({ preset: "latency-first", queueTax: 0, nearTie: 0 });
        const all = seeded(seed, context);
        const delays = workers.map((one) => waitOf(one, all.nowMs) + missOf(one, of));
        expect(delays[policy.choose(workers, of, all).index]).toBe(Math.min(...delays));
      }),
      { numRuns: scaled(1_000) },
    );
  });

  test("decides by the arithmetic that it explains", () => {
    const weighted = anyFleet.chain((workers) =>
      fc
        .array(fc.record({ weight: fc.constantFrom(0.5, 1, 2), preference: fc.integer({ min: -2, max: 2 }) }), {
          minLength: workers.length,
          maxLength: workers.length,
        })
        .map((extras) => workers.map((one, at) => ({ ...one, ...extras[at] }))),
    );
    fc.assert(
      fc.property(weighted, requests, contexts, fc.nat(), (workers, of, context, seed) => {
        const { index, terms } = explain(workers, of, context, seed);
        expect(kv().choose(workers, of, seeded(seed, context))).toEqual({ index });
        for (const one of terms) expect(one["cost"]).toBeCloseTo(costOf(one), 6);
        const costs = terms.map((one) => one["cost"] as number);
        const limit = Math.min(...costs) + (terms[0]?.["nearTieTokens"] as number);
        expect(costs[index]).toBeLessThanOrEqual(limit);
        if (workers[index]?.worker.workerId === of.home?.workerId) return;
        const recent = (at: number): number =>
          (terms[at]?.["recentTokens"] as number) / (workers[at]?.weight as number);
        for (const [at, cost] of costs.entries())
          if (cost <= limit) expect(recent(at)).toBeGreaterThanOrEqual(recent(index));
      }),
      { numRuns: scaled(1_000) },
    );
  });

  test("breaks exact ties with the same probability each", () => {
    const counts = [0, 0, 0];
    const context = seeded();
    const busy = candidate({ id: 3, activePrefillTokens: 1 });
    const workers = [candidate({ id: 0 }), busy, candidate({ id: 1 }), candidate({ id: 2 })];
    for (let time = 0; time < 30_000; time++) {
      const { workerId } = (workers[kv().choose(workers, prompt(1), context).index] as Candidate).worker;
      counts[workerId as number] = (counts[workerId as number] as number) + 1;
    }
    for (const count of counts) expect(Math.abs(count / 10_000 - 1)).toBeLessThan(0.05);
  });

  test("when all are idle and cold gives each its turn, strictly, the one that was given least lately first", () => {
    const gaps = fc.array(fc.nat(90_000), { minLength: 2, maxLength: 60, size: "max" });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), gaps, fc.nat(), (workers, waits, seed) => {
        const turns = playOneAtATime(workers, waits, seed);
        for (let from = 0; from + workers <= turns.length; from++) {
          expect(new Set(turns.slice(from, from + workers)).size).toBe(workers);
        }
      }),
      { numRuns: scaled(200) },
    );
  });
});

function explain(
  workers: readonly Candidate[],
  of: RoutingRequest,
  context: Partial<PolicyContext>,
  seed = 1,
): Choice & { readonly terms: readonly PolicyTerms[] } {
  const choice = kv().choose(workers, of, seeded(seed, { ...context, explain: true }));
  return { ...choice, terms: choice.terms ?? [] };
}

/** Computes a cost again from the terms that are said to make it up. */
function costOf(terms: PolicyTerms): number {
  const of = (name: string): number => terms[name] as number;
  const taxed = of("tax") * (of("missedTokens") - of("freeTokens"));
  return (of("slowness") * (of("waitTokens") + of("missedTokens")) + taxed) * of("preferenceFactor");
}

/** Serves distinct prompts of one length, each of them ended before the next comes, and tells who served them. */
function playOneAtATime(workers: number, waits: readonly number[], seed: number): number[] {
  const load = new BookedLoad(new MapBlockBook());
  const loads = Array.from({ length: workers }, (_, workerId) => load.open({ workerId, dpRank: 0 }));
  const candidates = loads.map((one) => ({ ...candidate(), worker: one.worker, load: one }));
  const policy = kv();
  const chance = seeded(seed);
  let nowMs = 0;
  return waits.map((waitMs, turn) => {
    nowMs += waitMs;
    load.advance(nowMs);
    const of = prompt(4, { sequenceHashes: BigUint64Array.from([1, 2, 3, 4], (at) => BigInt(10 * turn + at)) });
    const { averageMissedTokens } = load;
    const { index } = policy.choose(candidates, of, { ...noChance, random: chance.random, nowMs, averageMissedTokens });
    const { sequenceHashes, promptTokens } = of;
    const request = { sequenceHashes, missedTokens: promptTokens, missedBlocks: 4, trackPrefill: true };
    const booking = load.book(loads[index] as (typeof loads)[number], request, nowMs);
    nowMs += 200;
    load.endPrefill(booking, nowMs);
    load.release(booking, nowMs);
    return index;
  });
}
