import { describe, expect, test } from "vitest";
import {
  type Candidate,
  type KvOptions,
  kv,
  type PolicyContext,
  type PolicyTerms,
} from "../../src/selection/policy.js";
import { candidate, chosen, type Figures, fleet, noChance, prompt, seeded } from "./policy-stage.js";

// Every term of the cost, computed by hand. Prompts have four blocks of 512 tokens unless a test says otherwise.

const explain = (
  candidates: readonly Candidate[],
  context: Partial<PolicyContext> = {},
  options: KvOptions = {},
  of = prompt(4),
): readonly PolicyTerms[] => {
  const { terms } = kv(options).choose(candidates, of, seeded(1, { ...context, explain: true }));
  return terms as readonly PolicyTerms[];
};

/** The terms of one candidate that is alone. */
const explainOne = (figures: Figures, context: Partial<PolicyContext> = {}, of = prompt(4)): PolicyTerms =>
  explain([candidate(figures)], context, {}, of)[0] as PolicyTerms;

const column = (name: string, terms: readonly PolicyTerms[]): unknown[] => terms.map((one) => one[name]);

describe("kv counts what a worker has to compute", () => {
  test("as the tokens of the prompt that it does not hold, the last one at least", () => {
    const missed = [0, 1, 2, 3, 4].map((overlapBlocks) => explainOne({ overlapBlocks })["missedTokens"]);
    expect(missed).toEqual([2_048, 1_536, 1_024, 512, 1]);
  });

  test("with the partial block at the end of the prompt", () => {
    const of = prompt(4, { promptTokens: 2_100 });
    expect(explainOne({ overlapBlocks: 4 }, {}, of)["missedTokens"]).toBe(52);
    expect(explainOne({}, {}, prompt(0, { promptTokens: 52 }))["missedTokens"]).toBe(52);
  });
});

describe("kv counts the wait", () => {
  const busy: Figures = { activePrefills: 2, activePrefillTokens: 3_000, headTokens: 1_000, headSinceMs: 100 };

  test("as all tokens that are booked, while the speed is not known", () => {
    expect(explainOne(busy, { nowMs: 900 })["waitTokens"]).toBe(3_000);
  });

  test("less what the running prefill is believed to have done, all of it at most", () => {
    const at = (nowMs: number): unknown => explainOne({ ...busy, tokensPerMs: 2 }, { nowMs })["waitTokens"];
    expect([at(100), at(400), at(600), at(900)]).toEqual([3_000, 2_400, 2_000, 2_000]);
  });

  test("as if the running prefill had just begun while the clock is set back", () => {
    expect(explainOne({ ...busy, tokensPerMs: 2 }, { nowMs: 50 })["waitTokens"]).toBe(3_000);
  });
});

describe("kv taxes what another worker would have spared", () => {
  const taxOf = (queues: readonly number[], options: KvOptions = {}): unknown => {
    const workers = queues.map((activePrefills, id) => candidate({ id, activePrefills }));
    return explain(workers, {}, options)[0]?.["tax"];
  };

  test("by 2, and by 2 more for each prefill in the lower median of the queues", () => {
    expect(taxOf([0, 0, 5, 9])).toBe(2);
    expect(taxOf([9, 1, 5, 0])).toBe(4);
    expect(taxOf([5, 1, 3])).toBe(8);
    expect(taxOf([4, 1])).toBe(4);
    expect(taxOf([4])).toBe(10);
  });

  test("as it is told to", () => {
    expect(taxOf([1, 3, 5], { baseTax: 0.5, queueTax: 0.25 })).toBe(1.25);
    expect(taxOf([1, 3, 5], { preset: "latency-first" })).toBe(6);
    expect(taxOf([1, 3, 5], { preset: "cache-first" })).toBe(13);
    expect(taxOf([1, 3, 5], { preset: "cache-first", baseTax: 1 })).toBe(7);
  });

  test("but for hot blocks, of which a second copy is as good as the first", () => {
    const terms = explain(
      [0, 1, 3, 4].map((overlapBlocks, id) => candidate({ id, overlapBlocks })),
      { hotBlocks: 3 },
    );
    expect(column("freeTokens", terms)).toEqual([1_536, 1_024, 0, 0]);
    expect(column("cost", terms)).toEqual([2_048 + 2 * 512, 1_536 + 2 * 512, 512 + 2 * 512, 1 + 2 * 1]);
  });

  test("and never less than nothing where the hot blocks are all there is", () => {
    expect(explainOne({}, { hotBlocks: 4 })).toMatchObject({ freeTokens: 2_048, cost: 2_048 });
    const short = prompt(4, { promptTokens: 2_000 }); // says fewer tokens than its blocks have
    expect(explainOne({}, { hotBlocks: 4 }, short)).toMatchObject({ freeTokens: 2_000, cost: 2_000 });
  });
});

describe("kv corrects the delay by the speed of a worker", () => {
  const slowness = (speeds: readonly number[], extra: Figures = {}, options: KvOptions = {}): unknown[] => {
    const workers = speeds.map((tokensPerMs, id) => candidate({ id, tokensPerMs, endedPrefills: 10, ...extra }));
    return column("slowness", explain(workers, {}, options));
  };

  test("beside the lower median of all", () => {
    expect(slowness([10, 10, 10, 5])).toEqual([1, 1, 1, 2]);
    expect(slowness([10, 10, 10, 20])).toEqual([1, 1, 1, 0.5]);
    expect(slowness([12, 4, 10, 2])).toEqual([1 / 3, 1, 0.4, 2]);
  });

  test("only when it is more than 1.5 times from it", () => {
    expect(slowness([15, 15, 15, 10])).toEqual([1, 1, 1, 1]);
    expect(slowness([15, 15, 15, 9])).toEqual([1, 1, 1, 15 / 9]);
    expect(slowness([10, 10, 10, 15])).toEqual([1, 1, 1, 1]);
    expect(slowness([10, 10, 10, 16])).toEqual([1, 1, 1, 10 / 16]);
  });

  test("by 8 at most and 1/4 at least", () => {
    expect(slowness([100, 100, 100, 1])).toEqual([1, 1, 1, 8]);
    expect(slowness([1, 1, 1, 100])).toEqual([1, 1, 1, 0.25]);
  });

  test("only once ten prefills of it have ended, and passes the others over", () => {
    expect(slowness([10, 10, 10, 5], { endedPrefills: 9 })).toEqual([1, 1, 1, 1]);
    const workers = [1, 1, 10, 20].map((tokensPerMs, id) =>
      candidate({ id, tokensPerMs, endedPrefills: id < 2 ? 9 : 10 }),
    );
    expect(column("slowness", explain(workers))).toEqual([1, 1, 1, 0.5]);
  });

  test("not at all when it is told not to", () => {
    expect(slowness([10, 10, 10, 5], {}, { learnSpeed: false })).toEqual([1, 1, 1, 1]);
  });

  test("and by its weight: what a worker is said to do is not learnt of it once more", () => {
    const workers = [
      candidate({ id: 0, tokensPerMs: 10, endedPrefills: 10 }),
      candidate({ id: 1, tokensPerMs: 10, endedPrefills: 10 }),
      candidate({ id: 2, tokensPerMs: 20, endedPrefills: 10, weight: 2 }),
      candidate({ id: 3, tokensPerMs: 10, endedPrefills: 10, weight: 2 }),
    ];
    expect(column("slowness", explain(workers))).toEqual([1, 1, 0.5, 1]);
  });

  test("and leaves the tax as it is", () => {
    const [fast, slow] = explain([
      candidate({ id: 0, tokensPerMs: 10, endedPrefills: 10, activePrefillTokens: 100 }),
      candidate({ id: 1, tokensPerMs: 5, endedPrefills: 10, activePrefillTokens: 100, overlapBlocks: 2 }),
    ]) as [PolicyTerms, PolicyTerms];
    expect(slow).toMatchObject({ slowness: 1, cost: 100 + 1_024 + 2 * 1_024 });
    expect(fast).toMatchObject({ slowness: 0.5, cost: 0.5 * (100 + 2_048) + 2 * 2_048 });
  });
});

describe("kv heeds preferred taints", () => {
  test("by a factor of e at most in either direction", () => {
    const costs = column("cost", explain([-100, -1, 0, 1, 100].map((preference) => candidate({ preference }))));
    const factors = costs.map((cost) => (cost as number) / 6_144);
    const expected = [Math.E, Math.exp(Math.tanh(1)), 1, Math.exp(-Math.tanh(1)), 1 / Math.E];
    for (const [at, factor] of factors.entries()) expect(factor).toBeCloseTo(expected[at] as number, 12);
  });
});

describe("kv decides between near-equal workers", () => {
  const context: PolicyContext = { ...noChance, averageMissedTokens: 1_000 };
  const pair = (extraCost: number): Candidate[] => [
    candidate({ id: "warm", recentTokens: 5_000 }),
    candidate({ id: "rested", activePrefillTokens: extraCost }),
  ];

  test("for the one that was given least lately, if it costs up to 0.2 of an average request more", () => {
    expect(chosen(kv(), pair(200), prompt(4), context).workerId).toBe("rested");
    expect(chosen(kv(), pair(201), prompt(4), context).workerId).toBe("warm");
    expect(chosen(kv({ nearTie: 0.3 }), pair(300), prompt(4), context).workerId).toBe("rested");
    expect(chosen(kv({ nearTie: 0 }), pair(1), prompt(4), context).workerId).toBe("warm");
    expect(explain(pair(200), context)[0]).toMatchObject({ nearTieTokens: 200, recentTokens: 5_000 });
  });

  test("for the one with less recent work for its weight", () => {
    const workers = [
      candidate({ id: "small", recentTokens: 600 }),
      candidate({ id: "large", recentTokens: 1_000, weight: 2 }),
    ];
    const certain: PolicyContext = { ...context, averageMissedTokens: 1_000_000 };
    expect(chosen(kv(), workers, prompt(4), certain).workerId).toBe("large");
  });

  test("first of all for the one that served the session last", () => {
    const home = { workerId: "warm", dpRank: 0 };
    expect(chosen(kv(), pair(0), prompt(4, { home }), context).workerId).toBe("warm");
    const elsewhere = { workerId: "warm", dpRank: 1 };
    expect(chosen(kv(), pair(0), prompt(4, { home: elsewhere }), context).workerId).toBe("rested");
    expect(chosen(kv(), pair(0), prompt(4, { home: { workerId: "gone", dpRank: 0 } }), context).workerId).toBe(
      "rested",
    );
  });

  test("but not for the session's worker when it costs more than that, and again when it does not", () => {
    const home = { workerId: "home", dpRank: 0 };
    const workers = (backlog: number): Candidate[] => [
      candidate({ id: "home", overlapBlocks: 2, activePrefillTokens: backlog }),
      candidate({ id: "other" }),
    ];
    const spared = 3 * 1_024; // with a tax of 2
    expect(chosen(kv(), workers(spared + 200), prompt(4, { home }), context).workerId).toBe("home");
    expect(chosen(kv(), workers(spared + 201), prompt(4, { home }), context).workerId).toBe("other");
  });

  test("by chance only where cost and recent work are exactly equal", () => {
    expect(() => kv().choose(fleet(2), prompt(4), noChance)).toThrow("needs no chance");
    const almost = [candidate({ id: 0, recentTokens: 1e-9 }), candidate({ id: 1 })];
    expect(kv().choose(almost, prompt(4), noChance).index).toBe(1);
  });
});

describe("kv as an object", () => {
  test("has the name of its preset, and tells the host what makes a block hot", () => {
    expect([kv().name, kv({ preset: "balanced" }).name, kv({ preset: "cache-first" }).name]).toEqual([
      "kv",
      "kv",
      "cache-first",
    ]);
    expect([kv().hotRequests, kv({ hotRequests: 3 }).hotRequests]).toEqual([8, 3]);
  });

  test("explains only when it is asked to", () => {
    expect(kv().choose([candidate()], prompt(4), noChance)).toEqual({ index: 0 });
  });

  test("serves a fleet that grows beyond what it has room for", () => {
    const policy = kv();
    for (const count of [1, 16, 17, 100, 3]) {
      const workers = fleet(count, { activePrefillTokens: 9 });
      workers[count - 1] = candidate({ id: "free" });
      expect(chosen(policy, workers, prompt(4)).workerId).toBe("free");
    }
  });

  test("refuses options out of range", () => {
    const most = 1_000_000;
    for (const name of ["baseTax", "queueTax", "nearTie"] as const) {
      for (const value of [-0.1, most + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(() => kv({ [name]: value })).toThrow(
          expect.objectContaining({
            code: "KVROUTE_OPTION",
            message: `Expected ${name} to be a number from 0 to 1000000, got ${value}.`,
          }),
        );
      }
      for (const value of [0, most]) expect(kv({ [name]: value }).name).toBe("kv");
    }
    for (const hotRequests of [0, 1.5, most + 1]) {
      expect(() => kv({ hotRequests })).toThrow(
        `Expected hotRequests to be a whole number from 1 to 1000000, got ${hotRequests}.`,
      );
    }
    expect(() => kv({ preset: "fast" as "balanced" })).toThrow(
      "Expected preset to be one of latency-first, balanced, cache-first, got fast.",
    );
  });
});
