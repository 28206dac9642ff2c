import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Candidate,
  cacheAware,
  createPolicy,
  leastLoaded,
  POLICY_NAMES,
  type Policy,
  type PolicyName,
  prefixHash,
  random,
  roundRobin,
} from "../../src/selection/policy.js";
import { candidate, countChoices, expectEven, type Figures, fleet, noChance, request, seeded } from "./policy-stage.js";

describe("every policy", () => {
  test("chooses one of the candidates", () => {
    const names = fc.constantFrom(...POLICY_NAMES);
    const figures = fc.record({ overlapBlocks: fc.nat(9), missedBlocks: fc.nat(9), id: fc.nat(99) });
    const candidates = fc.array(figures, { minLength: 1, maxLength: 9 });
    const hashes = fc.array(fc.bigInt(0n, 2n ** 64n - 1n), { maxLength: 9 });
    fc.assert(
      fc.property(names, fc.array(candidates, { minLength: 1 }), hashes, fc.nat(), (name, lists, prompt, seed) => {
        const policy = createPolicy(name);
        const context = seeded(seed);
        for (const list of lists) {
          const { index } = policy.choose(list.map(candidate), request(...prompt), context);
          expect(list[index]).toBeDefined();
        }
      }),
    );
  });

  test("chooses the same again when it starts again with the same seed", () => {
    for (const name of POLICY_NAMES) {
      const choices = [1, 2].map(() => {
        const policy = createPolicy(name);
        const context = seeded(7);
        return Array.from({ length: 50 }, (_, key) => policy.choose(fleet(5), request(key), context).index);
      });
      expect(choices[0]).toEqual(choices[1]);
    }
  });

  test("goes by its name", () => {
    for (const name of POLICY_NAMES) expect(createPolicy(name).name).toBe(name);
  });

  test("leaves the overlap alone if it does not decide by it", () => {
    const refuse = (): number => {
      throw new Error("this policy does not need the overlap");
    };
    const secretive = fleet(4).map(({ worker, load, weight, preference }) => {
      const one = { worker, load, weight, preference, overlapBlocks: 0, activeOverlapBlocks: 0 };
      Object.defineProperty(one, "overlapBlocks", { get: refuse });
      return Object.defineProperty(one, "activeOverlapBlocks", { get: refuse });
    });
    const byOverlap = ["kv", "latency-first", "cache-first", "dynamo", "cache-aware", "longest-prefix"];
    for (const name of POLICY_NAMES.filter((one) => !byOverlap.includes(one))) {
      expect(() => createPolicy(name).choose(secretive, request(1, 2, 3), seeded())).not.toThrow();
    }
  });

  test("is refused when nobody knows its name", () => {
    expect(() => createPolicy("fastest" as PolicyName)).toThrow(
      expect.objectContaining({
        code: "KVROUTE_OPTION",
        message: `Expected a policy among ${POLICY_NAMES.join(", ")}, got fastest.`,
      }),
    );
  });
});

describe("round-robin", () => {
  test("gives every worker its turn in the order of the list", () => {
    const policy = roundRobin();
    const turns = Array.from({ length: 7 }, () => policy.choose(fleet(3), request(1), noChance).index);
    expect(turns).toEqual([0, 1, 2, 0, 1, 2, 0]);
  });

  test("goes on when the list becomes shorter or longer", () => {
    const policy = roundRobin();
    const turns = [3, 3, 2, 2, 4, 4, 4, 1].map((n) => policy.choose(fleet(n), request(1), noChance).index);
    expect(turns).toEqual([0, 1, 0, 1, 2, 3, 0, 0]);
  });
});

describe("random", () => {
  test("gives every worker the same share", () => {
    expectEven(countChoices(random(), fleet(8), 80_000), 0.03);
  });
});

describe("least-loaded", () => {
  test("chooses the fewest missed blocks, without chance where there is no tie", () => {
    const workers = [5, 3, 9].map((missedBlocks) => candidate({ missedBlocks }));
    expect(leastLoaded().choose(workers, request(1), noChance).index).toBe(1);
  });

  test("shares ties evenly among the tied", () => {
    const workers = [3, 7, 3, 3].map((missedBlocks) => candidate({ missedBlocks }));
    const [first, busy, ...others] = countChoices(leastLoaded(), workers, 30_000) as [number, number, ...number[]];
    expect(busy).toBe(0);
    expectEven([first, ...others], 0.03);
  });
});

describe("prefix-hash", () => {
  const hash64 = fc.bigInt(0n, 2n ** 64n - 1n);
  const prompts = fc.array(hash64, { minLength: 1, maxLength: 5 });
  const ids = fc.uniqueArray(fc.oneof(fc.nat(), fc.string()), { minLength: 2, maxLength: 9 });
  const chosen = (policy: Policy, workers: readonly Candidate[], prompt: readonly bigint[]): Candidate =>
    workers[policy.choose(workers, request(...prompt), noChance).index] as Candidate;

  test("sends the same prefix to the same worker, whatever follows", () => {
    fc.assert(
      fc.property(hash64, hash64, prompts, prompts, (first, second, left, right) => {
        const policy = prefixHash({ prefixBlocks: 2 });
        const one = chosen(policy, fleet(8), [first, second, ...left]);
        expect(chosen(policy, fleet(8), [first, second, ...right]).worker).toEqual(one.worker);
      }),
    );
  });

  test("looks at every one of the first blocks, and at what a short prompt has", () => {
    const workers = fleet(64);
    const policy = prefixHash({ prefixBlocks: 3 });
    const spread = (promptOf: (key: bigint) => bigint[]): number =>
      new Set(Array.from({ length: 64 }, (_, key) => chosen(policy, workers, promptOf(BigInt(key))).worker.workerId))
        .size;
    expect(spread((key) => [key])).toBeGreaterThan(30);
    expect(spread((key) => [1n, key])).toBeGreaterThan(30);
    expect(spread((key) => [1n, 2n, key])).toBeGreaterThan(30);
    expect(spread((key) => [key << 32n])).toBeGreaterThan(30);
    expect(spread((key) => [1n, 2n, 3n, key])).toBe(1);
  });

  test("moves only the prompts of a worker that goes", () => {
    fc.assert(
      fc.property(ids, fc.nat(), prompts, (names, which, prompt) => {
        const policy = prefixHash();
        const before = names.map((id) => candidate({ id }));
        const gone = before[which % before.length] as Candidate;
        const kept = chosen(policy, before, prompt);
        fc.pre(kept !== gone);
        const after = before.filter((one) => one !== gone);
        expect(chosen(policy, after, prompt)).toBe(kept);
      }),
    );
  });

  test("does not depend on the order of the list, on the instance, or on what was chosen before", () => {
    fc.assert(
      fc.property(ids, prompts, prompts, (names, earlier, prompt) => {
        const used = prefixHash();
        chosen(used, fleet(3), earlier);
        const workers = names.map((id) => candidate({ id }));
        const reversed = names.map((id) => candidate({ id })).reverse();
        expect(chosen(used, workers, prompt).worker).toEqual(chosen(prefixHash(), reversed, prompt).worker);
      }),
    );
  });

  test("gives every worker about the same share of many prefixes", () => {
    const workers = fleet(8);
    const counts = workers.map(() => 0);
    const policy = prefixHash();
    for (let key = 0; key < 80_000; key++) {
      const { index } = policy.choose(workers, request(0, key), noChance);
      counts[index] = (counts[index] as number) + 1;
    }
    expectEven(counts, 0.03);
  });

  test('takes 1 and 1n for one worker, and "1" and other ranks for others', () => {
    const policy = prefixHash();
    const named = (figures: Figures): string =>
      Array.from({ length: 64 }, (_, key) => {
        const workers = [candidate({ id: "rival" }), candidate(figures)];
        return policy.choose(workers, request(key), noChance).index;
      }).join("");
    expect(named({ id: 1 })).toBe(named({ id: 1n }));
    expect(named({ id: 1 })).not.toBe(named({ id: "1" }));
    expect(named({ id: 1 })).not.toBe(named({ id: 1, dpRank: 1 }));
  });

  test("spreads prompts without a full block at random", () => {
    expectEven(countChoices(prefixHash(), fleet(8), 80_000, request()), 0.03);
  });

  test("refuses a number of blocks that is not a whole number from 1 to 65536", () => {
    for (const prefixBlocks of [0, -1, 1.5, Number.NaN, 65_537]) {
      expect(() => prefixHash({ prefixBlocks })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected prefixBlocks to be a whole number from 1 to 65536, got ${prefixBlocks}.`,
        }),
      );
    }
    for (const prefixBlocks of [1, 65_536]) expect(prefixHash({ prefixBlocks }).name).toBe("prefix-hash");
  });
});

describe("cache-aware", () => {
  const prompt = request(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
  const choose = (matchThreshold: number, workers: readonly Candidate[], of = prompt): number =>
    cacheAware({ matchThreshold }).choose(workers, of, noChance).index;

  test("takes the least loaded of those who hold as much of the prompt", () => {
    const workers = [
      candidate({ missedBlocks: 1, overlapBlocks: 4 }),
      candidate({ missedBlocks: 3, overlapBlocks: 5 }),
      candidate({ missedBlocks: 2, overlapBlocks: 5 }),
    ];
    expect(choose(0.3, workers)).toBe(2);
  });

  test("follows the greatest match only when it is above the threshold, not at it", () => {
    const workers = (overlapBlocks: number): Candidate[] => [
      candidate({ missedBlocks: 1 }),
      candidate({ missedBlocks: 2, overlapBlocks }),
      candidate({ missedBlocks: 3, overlapBlocks: 1 }),
    ];
    expect(choose(0.3, workers(3))).toBe(0);
    expect(choose(0.3, workers(4))).toBe(1);
  });

  test("lets the longest prefix win at threshold 0, and no match at all at threshold 1", () => {
    const workers = [candidate({ missedBlocks: 0 }), candidate({ missedBlocks: 9, overlapBlocks: 1 })];
    expect(choose(0, workers)).toBe(1);
    expect(choose(1, [candidate({ missedBlocks: 0 }), candidate({ missedBlocks: 9, overlapBlocks: 10 })])).toBe(0);
  });

  test("sends a prompt without a full block to the least loaded worker", () => {
    expect(choose(0, [candidate({ missedBlocks: 2 }), candidate({ missedBlocks: 1 })], request())).toBe(1);
  });

  test("shares ties of match and load evenly", () => {
    const workers = [8, 8, 2, 8].map((overlapBlocks) => candidate({ overlapBlocks, missedBlocks: 3 }));
    const [first, second, short, fourth] = countChoices(cacheAware(), workers, 30_000, prompt);
    expect(short).toBe(0);
    expectEven([first, second, fourth] as number[], 0.03);
  });

  test("refuses a threshold that is not a number from 0 to 1", () => {
    for (const matchThreshold of [-0.1, 1.1, Number.NaN]) {
      expect(() => cacheAware({ matchThreshold })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected matchThreshold to be a number from 0 to 1, got ${matchThreshold}.`,
        }),
      );
    }
  });
});
