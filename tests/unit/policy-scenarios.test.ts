import { describe, expect, test } from "vitest";
import { createPolicy, POLICY_NAMES, type PolicyName } from "../../src/selection/policy.js";
import { type Arrival, imbalance, playFleet, quantile } from "./policy-fleet.js";

// What users of other routers have reported, as scenarios, with the outcome that they should have had.

interface Shape {
  readonly shared: number;
  readonly own: number;
  readonly tailTokens?: number;
  readonly blockTokens?: number;
}

/** Prompts of so many blocks, the first `shared` of which are the same in all. */
function prompts(count: number, everyMs: number, shape: Shape): Arrival[] {
  const { shared, own, tailTokens = 0, blockTokens = 512 } = shape;
  const prefix = Array.from({ length: shared }, (_, at) => at);
  return Array.from({ length: count }, (_, number) => ({
    atMs: number * everyMs,
    blocks: [...prefix, ...Array.from({ length: own }, (_, at) => 1_000 + number * own + at)],
    promptTokens: (shared + own) * blockTokens + tailTokens,
    blockTokens,
  }));
}

const speeds = (workers: number): number[] => Array.from({ length: workers }, () => 10);

describe("a slow worker", () => {
  // Three workers do 10 tokens a millisecond, one does 1; requests come at 60 % of what they all can do.
  const arrivals = prompts(4_000, 1_024 / (0.6 * 31), { shared: 0, own: 2 });

  test.each<PolicyName>(["kv", "latency-first", "cache-first", "least-loaded", "dynamo"])(
    "is not sent what nobody holds because its cache is small: under %s misses follow load",
    (name) => {
      const { missedTokens, delaysMs } = playFleet(createPolicy(name), [1, 10, 10, 10], arrivals);
      const total = missedTokens.reduce((sum, tokens) => sum + tokens, 0);
      expect((missedTokens[0] as number) / total).toBeLessThan(0.12); // a quarter would be its equal share
      expect(quantile(delaysMs, 0.5)).toBeLessThan(300);
      expect(quantile(delaysMs, 1)).toBeLessThan(6_000); // nothing piles up: the run lasts more than three minutes
    },
  );

  test("is sent next to nothing by kv once its speed is known", () => {
    const { missedTokens } = playFleet(createPolicy("kv"), [1, 10, 10, 10], arrivals);
    const total = missedTokens.reduce((sum, tokens) => sum + tokens, 0);
    expect((missedTokens[0] as number) / total).toBeLessThan(0.03);
  });
});

describe("a thousand distinct requests, each finished before the next comes", () => {
  const arrivals = prompts(1_000, 1_000, { shared: 0, own: 4 });

  test.each(POLICY_NAMES)("are shared evenly among four workers by %s", (name) => {
    const { requests } = playFleet(createPolicy(name), speeds(4), arrivals);
    for (const count of requests) expect(Math.abs(count / 250 - 1)).toBeLessThanOrEqual(0.15);
  });

  test.each<PolicyName>(["kv", "latency-first", "cache-first", "least-loaded", "cache-aware", "session-pin"])(
    "are shared exactly by %s",
    (name) => {
      expect(playFleet(createPolicy(name), speeds(4), arrivals).requests).toEqual([250, 250, 250, 250]);
    },
  );
});

describe("a short prefix that all prompts share", () => {
  // 16 tokens of 10,000: with 70 % of the fleet busy, who holds them is nobody's concern.
  const arrivals = prompts(4_000, 10_000 / 80 / 0.7, { shared: 1, own: 9, tailTokens: 9_840, blockTokens: 16 });

  test.each<PolicyName>(["kv", "latency-first", "cache-first", "cache-aware"])(
    "does not pin all of them to one rank under %s",
    (name) => {
      expect(imbalance(playFleet(createPolicy(name), speeds(8), arrivals).missedTokens)).toBeLessThan(1.1);
    },
  );

  test("does so where the longest prefix wins, which is why it is a trap", () => {
    const { missedTokens } = playFleet(createPolicy("longest-prefix"), speeds(8), arrivals);
    expect(imbalance(missedTokens)).toBeGreaterThan(7.9);
  });
});

describe("one hot prefix at three times what a worker can do", () => {
  // A tail of 256 tokens takes 25.6 ms, so that three workers would be busy with tails alone.
  const arrivals = prompts(20_000, 25.6 / 3, { shared: 16, own: 0, tailTokens: 256 });

  test.each<PolicyName>(["kv", "latency-first", "cache-first"])("spills over to others under %s", (name) => {
    const { delaysMs, hitBlocks, requests, missedTokens } = playFleet(createPolicy(name), speeds(8), arrivals);
    expect(quantile(delaysMs, 0.99)).toBeLessThan(700);
    expect(imbalance(missedTokens)).toBeLessThan(1.05);
    for (const [at, hits] of hitBlocks.entries()) {
      expect(hits).toBeGreaterThan(16 * ((requests[at] as number) - 1) - 1); // later hits count on every copy
    }
  });

  test("waits for minutes where the longest prefix wins, however good its hits are", () => {
    const { delaysMs } = playFleet(createPolicy("longest-prefix"), speeds(8), arrivals);
    expect(quantile(delaysMs, 0.99)).toBeGreaterThan(60_000);
  });
});

describe("a worker that nothing is known of", () => {
  test.each<PolicyName>(["kv", "dynamo", "least-loaded", "power-of-two"])(
    "counts as idle, and is used by %s",
    (name) => {
      const arrivals = prompts(400, 20, { shared: 0, own: 1 });
      const { requests } = playFleet(createPolicy(name), speeds(5), arrivals);
      for (const count of requests) expect(count).toBeGreaterThan(40);
    },
  );
});
