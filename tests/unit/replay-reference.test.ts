import { describe, expect, test } from "vitest";
import { cacheAware, leastLoaded, prefixHash, random, roundRobin } from "../../src/selection/policy.js";
import { replay } from "../../src/sim/replay.js";
import { AGENT, areThere, CONVERSATION, requests } from "./replay-shared-traces.js";

// The figures of the traces' README, measured with an independent simulation without time.

const POINT = 0.01;

interface Cell {
  readonly hitRate: number;
  readonly imbalance: number;
  /** The imbalance of prefix-hash depends on the hash; only its bound is given. */
  readonly isBound?: boolean;
}

interface Setting {
  readonly workers: number;
  readonly blocksPerWorker: number | "infinite";
  readonly tolerance: number;
  readonly cells: readonly Cell[];
}

// In each row: round robin, the hash of block 0, the longest prefix, the hash of the first two blocks, match > 0.3.
const SETTINGS: readonly Setting[] = [
  {
    workers: 4,
    blocksPerWorker: "infinite",
    tolerance: 0.3 * POINT,
    cells: [
      { hitRate: 0.1918, imbalance: 1.01 },
      { hitRate: 0.3664, imbalance: 4 },
      { hitRate: 0.3664, imbalance: 4 },
      { hitRate: 0.3664, imbalance: 1.2, isBound: true },
      { hitRate: 0.362, imbalance: 1 },
    ],
  },
  {
    workers: 8,
    blocksPerWorker: "infinite",
    tolerance: 0.3 * POINT,
    cells: [
      { hitRate: 0.1363, imbalance: 1.04 },
      { hitRate: 0.3664, imbalance: 8 },
      { hitRate: 0.3664, imbalance: 8 },
      { hitRate: 0.3664, imbalance: 1.2, isBound: true },
      { hitRate: 0.361, imbalance: 1.01 },
    ],
  },
  {
    workers: 8,
    blocksPerWorker: 4_000,
    tolerance: POINT,
    cells: [
      { hitRate: 0.0981, imbalance: 1.04 },
      { hitRate: 0.0865, imbalance: 8 },
      { hitRate: 0.0865, imbalance: 8 },
      { hitRate: 0.3311, imbalance: 1.2, isBound: true },
      { hitRate: 0.3274, imbalance: 1.01 },
    ],
  },
];

describe.skipIf(!areThere)("the Mooncake conversation trace", () => {
  test.each(SETTINGS)(
    "on $workers workers with $blocksPerWorker blocks each gives the reference's figures",
    async ({ workers, blocksPerWorker, tolerance, cells }) => {
      const byBlocks = [prefixHash({ prefixBlocks: 1 }), cacheAware({ matchThreshold: 0 }), prefixHash(), cacheAware()];
      const policies = [roundRobin(), ...byBlocks];
      const report = await replay(requests(CONVERSATION), { policies, workers, blocksPerWorker, now: () => 0 });
      expect(report).toMatchObject({ requests: 12_031, emptyRequests: 0, blocks: 288_500 });
      for (const [at, { hitRate, imbalance, isBound }] of cells.entries()) {
        const row = report.policies[at];
        expect(Math.abs((row?.hitRate ?? 0) - hitRate)).toBeLessThanOrEqual(tolerance);
        if (isBound) expect(row?.imbalance).toBeLessThanOrEqual(imbalance);
        else expect(Math.abs((row?.imbalance ?? 0) - imbalance)).toBeLessThanOrEqual(0.03);
      }
    },
  );

  test("hits 36.64 % in one unlimited cache, whatever the policy", async () => {
    const options = { workers: 1, blocksPerWorker: "infinite" as const, now: () => 0 };
    const report = await replay(requests(CONVERSATION), { ...options, policies: [random(), leastLoaded()] });
    for (const row of report.policies)
      expect(row).toMatchObject({ missedBlocks: [182_790], imbalance: 1, evictions: 0 });
    expect(report.policies[0]?.hitRate).toBeCloseTo(0.3664, 4);
  });
});

describe.skipIf(!areThere)("the agent trace", () => {
  test("has 746 requests, 55 of them without a full block", async () => {
    const options = { policies: [cacheAware()], workers: 4, blocksPerWorker: 4_000, now: () => 0 };
    const report = await replay(requests(AGENT), options);
    expect(report).toMatchObject({ requests: 746, emptyRequests: 55 });
  });
});
