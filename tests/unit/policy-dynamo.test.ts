import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Candidate, dynamo, type PolicyContext, type PolicyTerms } from "../../src/selection/policy.js";
import { candidate, chosen, countChoices, expectEven, fleet, noChance, prompt, seeded } from "./policy-stage.js";

const explain = (workers: readonly Candidate[], options = {}, of = prompt(4)): readonly PolicyTerms[] =>
  dynamo(options).choose(workers, of, seeded(1, { explain: true })).terms ?? [];

/** Workers whose costs are 4, 5 and 8 blocks for a prompt of two. */
const spread = (): Candidate[] => [0, 1, 4].map((activeBlocks, id) => candidate({ id, activeBlocks }));

describe("dynamo", () => {
  test("chooses the lowest cost: prefill booked and to come, less overlap, plus blocks in use", () => {
    const workers = [
      candidate({ id: 0, activePrefillTokens: 1_024, activeBlocks: 3, overlapBlocks: 3, activeOverlapBlocks: 2 }),
      candidate({ id: 1, activeBlocks: 3 }),
      candidate({ id: 2, overlapBlocks: 1, activeBlocks: 1 }),
    ];
    expect(explain(workers).map((terms) => terms["cost"])).toEqual([6 - 3 + 5, 4 + 7, 4 - 1 + 5]);
    expect(explain(workers)[0]).toEqual({
      cost: 8,
      overlapBlocks: 3,
      creditBlocks: 3,
      potentialBlocks: 5,
      activePrefillTokens: 1_024,
      preferenceFactor: 1,
    });
    expect(chosen(dynamo(), workers.slice(1), prompt(4)).workerId).toBe(2);
  });

  test("measures the backlog against the least busy worker", () => {
    const workers = [
      candidate({ activePrefillTokens: 3_072, overlapBlocks: 4 }),
      candidate({ activePrefillTokens: 1_024 }),
    ];
    expect(explain(workers, { overlapScoreCreditDecay: 1 })[0]).toMatchObject({ creditBlocks: 2, cost: 10 - 2 + 4 });
  });

  test("shares equal costs evenly, and draws no chance where one is lowest", () => {
    expectEven(countChoices(dynamo(), fleet(4), 40_000), 0.05);
    expect(dynamo().choose(spread(), prompt(2), noChance)).toEqual({ index: 0 });
  });

  test("multiplies the cost by a factor from 1/e to e for preferred taints", () => {
    fc.assert(
      fc.property(fc.double({ min: -1e300, max: 1e300, noNaN: true }), (preference) => {
        const [terms] = explain([candidate({ preference })]) as [PolicyTerms];
        const factor = terms["preferenceFactor"] as number;
        expect(terms["cost"]).toBe(8 * factor);
        expect(factor).toBeGreaterThanOrEqual(Math.exp(-1));
        expect(factor).toBeLessThanOrEqual(Math.E);
        if (preference > 1e-9) expect(factor).toBeLessThan(1);
        if (preference < -1e-9) expect(factor).toBeGreaterThan(1);
      }),
    );
  });

  test("at a temperature takes each as often as the softmax of its cost, spread from 0 to 1, says", () => {
    for (const temperature of [0.3, 1, 5]) {
      const counts = countChoices(dynamo({ temperature }), spread(), 60_000, prompt(2));
      const weights = [0, 0.25, 1].map((cost) => Math.exp(-cost / temperature));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (const [at, count] of counts.entries()) {
        expect(Math.abs(count / 60_000 - (weights[at] as number) / total)).toBeLessThan(0.01);
      }
    }
  });

  test("at a temperature shares equal costs evenly, and chooses a lone worker", () => {
    expectEven(countChoices(dynamo({ temperature: 1 }), fleet(4), 40_000), 0.05);
    expect(dynamo({ temperature: 1 }).choose([candidate()], prompt(2), seeded()).index).toBe(0);
  });

  test("at the lowest and the highest temperature still gives one of the candidates, whatever chance says", () => {
    const extremes: PolicyContext[] = [0, 1 - 2 ** -53].map((value) => ({ ...noChance, random: () => value }));
    for (const context of extremes) {
      expect(dynamo({ temperature: Number.MIN_VALUE }).choose(spread(), prompt(2), context).index).toBe(0);
      const reversed = spread().reverse();
      expect(dynamo({ temperature: Number.MIN_VALUE }).choose(reversed, prompt(2), context).index).toBe(2);
      expect(dynamo({ temperature: 1_000_000 }).choose(spread(), prompt(2), context).index).toBe(
        context === extremes[0] ? 0 : 2,
      );
    }
  });

  test("explains only when it is asked to, by the arithmetic that it chooses by", () => {
    const figures = fc.record({
      activePrefillTokens: fc.nat(9_000),
      activeBlocks: fc.nat(40),
      overlapBlocks: fc.nat(4),
      activeOverlapBlocks: fc.nat(4),
    });
    fc.assert(
      fc.property(fc.array(figures, { minLength: 1, maxLength: 6 }), fc.nat(), (list, seed) => {
        const workers = list.map((one, id) => candidate({ ...one, id }));
        const { index, terms } = dynamo().choose(workers, prompt(4), seeded(seed, { explain: true }));
        expect(dynamo().choose(workers, prompt(4), seeded(seed))).toEqual({ index });
        const costs = (terms ?? []).map((one) => one["cost"] as number);
        expect(costs[index]).toBe(Math.min(...costs));
      }),
    );
  });

  test("refuses a temperature out of range", () => {
    for (const temperature of [-0.1, 1_000_001, Number.NaN]) {
      expect(() => dynamo({ temperature })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected temperature to be a number from 0 to 1000000, got ${temperature}.`,
        }),
      );
    }
  });
});
