import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Candidate,
  cacheAware,
  createPolicy,
  leastLoaded,
  longestPrefix,
  POLICY_NAMES,
  type PolicyName,
  powerOfTwo,
  random,
  roundRobin,
} from "../../src/selection/policy.js";
import {
  candidate,
  chosen,
  countChoices,
  expectEven,
  type Figures,
  fleet,
  noChance,
  request,
  seeded,
} from "./policy-stage.js";

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

  test("gives turns by weight, spread among those of the others", () => {
    const policy = roundRobin();
    const workers = [4, 1, 1].map((weight, id) => candidate({ id, weight }));
    const turns = Array.from({ length: 12 }, () => policy.choose(workers, request(1), noChance).index);
    expect(turns).toEqual([0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 2, 0]);
  });

  test("gives exact shares of every round of turns, whatever the weights", () => {
    const weights = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(weights, (list) => {
        const workers = list.map((weight, id) => candidate({ id, weight }));
        const round = list.reduce((sum, weight) => sum + weight, 0);
        const counts = countChoices(roundRobin(), workers, 2 * round, request(1), noChance);
        const isEqual = list.every((weight) => weight === list[0]);
        expect(counts).toEqual(isEqual ? list.map(() => (2 * round) / list.length) : list.map((weight) => 2 * weight));
      }),
    );
  });

  test("goes on by weight when workers come and go, and a worker that returns has nothing saved up", () => {
    const policy = roundRobin();
    const all = [1, 3, 1].map((weight, id) => candidate({ id, weight }));
    const without = all.slice(0, 2);
    const lists = [all, all, ...Array.from({ length: 40 }, () => without), all, all, all, all, all];
    const turns = lists.map((list) => chosen(policy, list).workerId);
    const last = turns.slice(-5);
    expect(last.filter((id) => id === 2)).toHaveLength(1);
    expect(turns.slice(2, 42).filter((id) => id === 0)).toHaveLength(10);
  });
});

describe("random", () => {
  test("gives every worker the same share", () => {
    expectEven(countChoices(random(), fleet(8), 80_000), 0.03);
  });

  test("gives a worker of twice the weight twice the share", () => {
    const workers = [1, 2, 0.5, 0.5].map((weight) => candidate({ weight }));
    const [one, two, ...halves] = countChoices(random(), workers, 80_000) as [number, number, ...number[]];
    expectEven([one, two / 2, ...halves.map((count) => 2 * count)], 0.04);
  });

  test("draws as if there were no weights where all are equal", () => {
    for (let seed = 0; seed < 50; seed++) {
      const draws = [1, 4].map((weight) => countChoices(random(), fleet(7, { weight }), 20, request(1), seeded(seed)));
      expect(draws[1]).toEqual(draws[0]);
    }
  });
});

describe("least-loaded", () => {
  const least = (...workers: Figures[]): number =>
    leastLoaded().choose(
      workers.map((one) => candidate(one)),
      request(1),
      noChance,
    ).index;

  test("chooses the least prefill outstanding, then the least recent work, then the fewest missed blocks", () => {
    expect(least({ activePrefillTokens: 9, recentTokens: 1 }, { activePrefillTokens: 8, recentTokens: 99 })).toBe(1);
    expect(least({ recentTokens: 9, missedBlocks: 1 }, { recentTokens: 8, missedBlocks: 99 })).toBe(1);
    expect(least({ missedBlocks: 5 }, { missedBlocks: 3 }, { missedBlocks: 9 })).toBe(1);
  });

  test("compares only those with the least outstanding by what comes after it", () => {
    expect(least({ activePrefillTokens: 9 }, { recentTokens: 5 }, { recentTokens: 4, missedBlocks: 7 })).toBe(2);
  });

  test("lets a worker of twice the weight have twice as much of each", () => {
    expect(least({ activePrefillTokens: 9, weight: 2 }, { activePrefillTokens: 5 })).toBe(0);
    expect(least({ recentTokens: 9, weight: 2 }, { recentTokens: 5 })).toBe(0);
    expect(least({ missedBlocks: 9, weight: 2 }, { missedBlocks: 5 })).toBe(0);
  });

  test("shares ties evenly among the tied", () => {
    const workers = [3, 7, 3, 3].map((missedBlocks) => candidate({ missedBlocks }));
    const [first, busy, ...others] = countChoices(leastLoaded(), workers, 30_000) as [number, number, ...number[]];
    expect(busy).toBe(0);
    expectEven([first, ...others], 0.03);
  });
});

describe("power-of-two", () => {
  test("draws two different workers with the same probability each, and takes the one with fewer active requests", () => {
    const workers = [0, 1, 2, 3].map((activeRequests) => candidate({ activeRequests }));
    const counts = countChoices(powerOfTwo(), workers, 60_000);
    const expected = [3 / 6, 2 / 6, 1 / 6, 0]; // of six pairs, those in which it has the fewest
    for (const [at, count] of counts.entries())
      expect(Math.abs(count / 60_000 - (expected[at] as number))).toBeLessThan(0.01);
  });

  test("compares active requests for the weight", () => {
    const workers = [candidate({ activeRequests: 3, weight: 2 }), candidate({ activeRequests: 2 })];
    expect(countChoices(powerOfTwo(), workers, 100)).toEqual([100, 0]);
  });

  test("shares the work of equal workers evenly, and chooses a lone one", () => {
    expectEven(countChoices(powerOfTwo(), fleet(5), 50_000), 0.04);
    expect(countChoices(powerOfTwo(), fleet(1), 10)).toEqual([10]);
  });
});

describe("longest-prefix", () => {
  test("chooses who holds most of the prompt, whatever its load, ties at random", () => {
    const workers = [0, 2, 1, 2].map((overlapBlocks) =>
      candidate({ overlapBlocks, activePrefillTokens: 9 ** 9 * overlapBlocks }),
    );
    const [none, first, less, second] = countChoices(longestPrefix(), workers, 20_000, request(1, 2, 3));
    expect([none, less]).toEqual([0, 0]);
    expectEven([first, second] as number[], 0.04);
  });

  test("is a trap: where all prompts begin alike, the first worker gets them all", () => {
    const policy = longestPrefix();
    const held = [0, 0, 0, 0];
    const counts = [0, 0, 0, 0];
    const context = seeded();
    for (let number = 0; number < 100; number++) {
      const workers = held.map((overlapBlocks, id) => candidate({ id, overlapBlocks }));
      const { index } = policy.choose(workers, request(1, 100 + number), context);
      held[index] = 1; // the system prompt is cached where it was computed
      counts[index] = (counts[index] as number) + 1;
    }
    expect(Math.max(...counts)).toBe(100);
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

  test("lets a worker of twice the weight have twice the blocks", () => {
    const workers = [candidate({ missedBlocks: 9, weight: 2 }), candidate({ missedBlocks: 5 })];
    expect(choose(0.3, workers)).toBe(0);
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
