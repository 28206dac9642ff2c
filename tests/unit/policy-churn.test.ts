import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createPolicy, POLICY_NAMES, type PolicyName, type PolicyOptions } from "../../src/selection/policy.js";
import { scaled } from "../support/scale.js";
import { candidate, type Figures, prompt, seeded } from "./policy-stage.js";

// Every policy while workers come and go, with every figure that a candidate can have.

const figures: fc.Arbitrary<Figures> = fc.record(
  {
    id: fc.nat(9),
    dpRank: fc.nat(1),
    overlapBlocks: fc.nat(6),
    activeOverlapBlocks: fc.nat(6),
    weight: fc.constantFrom(0.01, 0.5, 1, 3),
    preference: fc.integer({ min: -3, max: 3 }),
    missedBlocks: fc.nat(99),
    activeRequests: fc.nat(9),
    activeBlocks: fc.nat(99),
    activePrefills: fc.nat(9),
    activePrefillTokens: fc.nat(9_000),
    tokensPerMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
    endedPrefills: fc.nat(30),
    recentTokens: fc.nat(9_000),
  },
  { requiredKeys: ["id", "dpRank"] },
);

const lists = fc.array(
  fc.uniqueArray(figures, { selector: ({ id, dpRank }) => `${id} ${dpRank}`, minLength: 1, maxLength: 8 }),
  { minLength: 1, maxLength: 12 },
);

const turns = fc.record({
  blocks: fc.nat(6),
  session: fc.option(fc.constantFrom("a", "b"), { nil: undefined }),
  affinityKey: fc.option(fc.constantFrom("k"), { nil: undefined }),
});

const VARIANTS: readonly [PolicyName, PolicyOptions][] = [
  ...POLICY_NAMES.map((name): [PolicyName, PolicyOptions] => [name, {}]),
  ["dynamo", { temperature: 0.5 }],
  ["prefix-hash", { prefixBlocks: "learnt", fanOut: 2, maxLearntBlocks: 4 }],
];

describe.each(VARIANTS)("%s %o, while workers come and go", (name, options) => {
  test("chooses a candidate, and the same one when it is asked to explain", () => {
    fc.assert(
      fc.property(lists, fc.array(turns, { minLength: 12, maxLength: 12 }), fc.nat(), (fleets, asked, seed) => {
        const [silent, talking] = [createPolicy(name, options), createPolicy(name, options)];
        const [chance, same] = [seeded(seed), seeded(seed)];
        for (const [at, list] of fleets.entries()) {
          const workers = list.map((one) => candidate(one));
          const { blocks, ...rest } = asked[at] as (typeof asked)[number];
          const of = prompt(blocks, rest);
          const { index, terms } = silent.choose(workers, of, { ...chance, nowMs: at });
          expect(workers[index]).toBeDefined();
          expect(terms).toBeUndefined();
          const told = talking.choose(workers, of, { ...same, nowMs: at, explain: true });
          expect(told.index).toBe(index);
          if (told.terms === undefined) continue;
          expect(told.terms).toHaveLength(workers.length);
          expect(told.terms.flatMap((one) => Object.values(one)).every(Number.isFinite)).toBe(true);
        }
      }),
      { numRuns: scaled(200) },
    );
  });

  test("takes what it is given as it is", () => {
    const workers = Array.from({ length: 4 }, (_, id) => {
      const one = candidate({ id, overlapBlocks: id });
      return Object.freeze({ ...one, worker: Object.freeze(one.worker), load: Object.freeze(one.load) });
    });
    const of = Object.freeze(prompt(4, { session: "chat" }));
    const before = [...of.sequenceHashes];
    createPolicy(name, options).choose(Object.freeze(workers), of, seeded(1, { explain: true }));
    expect([...of.sequenceHashes]).toEqual(before);
  });
});
