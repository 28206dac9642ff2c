import { describe, expect, test } from "vitest";
import { createPolicy, type PolicyName } from "../../src/selection/policy.js";
import { type PolicyReport, replay } from "../../src/sim/replay.js";
import { areThere, CONVERSATION, requests } from "./replay-shared-traces.js";

// A study of routing policies, simulated by other means, gives the figures that the replay is held to here: Mooncake's
// conversation trace on 8 workers, answers of 25 ms a token. What is asked of kv is a little less than the study had.

type Row = readonly [policy: PolicyName, meanSeconds: number];

interface Setting {
  readonly blocksPerWorker: number | "infinite";
  readonly utilisation: number;
  /** The study's mean delays. */
  readonly rows: readonly Row[];
}

const SETTINGS: readonly Setting[] = [
  {
    blocksPerWorker: "infinite",
    utilisation: 0.7,
    rows: [
      ["kv", 1.63],
      ["latency-first", 1.58],
      ["cache-first", 1.69],
      ["cache-aware", 2.0],
      ["prefix-hash", 3.94],
      ["round-robin", 5.57],
    ],
  },
  {
    blocksPerWorker: "infinite",
    utilisation: 0.9,
    rows: [
      ["kv", 2.39],
      ["latency-first", 2.39],
      ["cache-first", 2.49],
      ["cache-aware", 2.95],
      ["prefix-hash", 7.62],
      ["round-robin", 19.42],
      ["least-loaded", 6.08],
      ["dynamo", 4.43],
      ["longest-prefix", 8_120],
    ],
  },
  {
    blocksPerWorker: "infinite",
    utilisation: 1.1,
    rows: [
      ["kv", 4.24],
      ["latency-first", 4.36],
      ["cache-first", 4.31],
      ["cache-aware", 4.9],
      ["prefix-hash", 16.43],
      ["round-robin", 218],
    ],
  },
  {
    blocksPerWorker: 4_000,
    utilisation: 0.7,
    rows: [
      ["kv", 1.62],
      ["latency-first", 1.61],
      ["cache-first", 1.67],
      ["cache-aware", 1.96],
      ["prefix-hash", 3.93],
      ["round-robin", 5.35],
    ],
  },
  {
    blocksPerWorker: 4_000,
    utilisation: 0.9,
    rows: [
      ["kv", 2.38],
      ["latency-first", 2.38],
      ["cache-first", 2.46],
      ["cache-aware", 2.87],
      ["prefix-hash", 7.53],
      ["round-robin", 18.57],
      ["least-loaded", 5.8],
      ["dynamo", 4.43],
      ["longest-prefix", 11_571],
    ],
  },
  {
    blocksPerWorker: 4_000,
    utilisation: 1.1,
    rows: [
      ["kv", 3.93],
      ["latency-first", 4.03],
      ["cache-first", 3.98],
      ["cache-aware", 4.51],
      ["prefix-hash", 16.34],
      ["round-robin", 198],
    ],
  },
];

/** Hits at least; imbalance, the same in windows, mean and p99 in seconds at most. */
const TARGETS: Readonly<Record<string, readonly [number, number, number, number, number]>> = {
  "kv infinite": [0.35, 1.02, 1.22, 2.45, 17],
  "cache-first infinite": [0.36, 1.02, 1.25, 2.55, 17.5],
  "kv 4000": [0.315, 1.02, 1.22, 2.45, 16.5],
};

const measure = async ({ blocksPerWorker, utilisation, rows }: Setting): Promise<readonly PolicyReport[]> => {
  const policies = rows.map(([name]) => createPolicy(name));
  const timing = { utilisation };
  return (await replay(requests(CONVERSATION), { policies, workers: 8, blocksPerWorker, timing, now: () => 0 }))
    .policies;
};

describe.skipIf(!areThere)("the Mooncake conversation trace with time", () => {
  test.each(SETTINGS)("at $utilisation with $blocksPerWorker blocks has the study's mean delays", async (setting) => {
    for (const [at, report] of (await measure(setting)).entries()) {
      const [, expected] = setting.rows[at] as Row;
      const mean = (report.delayMs?.mean ?? 0) / 1000;
      expect(Math.abs(mean / expected - 1), `${report.policy}: ${mean} s, not ${expected} s`).toBeLessThanOrEqual(0.05);
      const target = setting.utilisation === 0.9 ? TARGETS[`${report.policy} ${setting.blocksPerWorker}`] : undefined;
      if (target === undefined) continue;
      const [hitRate, imbalance, windowImbalance, meanSeconds, p99Seconds] = target;
      expect(report.hitRate).toBeGreaterThanOrEqual(hitRate);
      expect(report.imbalance).toBeLessThanOrEqual(imbalance);
      expect(report.windowImbalance).toBeLessThanOrEqual(windowImbalance);
      expect(mean).toBeLessThanOrEqual(meanSeconds);
      expect((report.delayMs?.p99 ?? Number.POSITIVE_INFINITY) / 1000).toBeLessThanOrEqual(p99Seconds);
    }
  });

  test("waits less on average where requests are held until a worker is free", async () => {
    const policies = [createPolicy("kv")];
    const timing = { utilisation: 0.9, hold: true };
    const report = await replay(requests(CONVERSATION), {
      ...{ policies, workers: 8, blocksPerWorker: 4_000, timing },
      now: () => 0,
    });
    const [{ hitRate = 0, delayMs } = {}] = report.policies;
    expect(hitRate).toBeGreaterThanOrEqual(0.31);
    expect((delayMs?.mean ?? Number.POSITIVE_INFINITY) / 1000).toBeLessThanOrEqual(2.2);
    expect((delayMs?.p99 ?? Number.POSITIVE_INFINITY) / 1000).toBeLessThanOrEqual(16.5);
  });

  test("reports the same for the same seed", async () => {
    const setting: Setting = {
      blocksPerWorker: 4_000,
      utilisation: 0.9,
      rows: [
        ["power-of-two", 0],
        ["kv", 0],
      ],
    };
    expect(await measure(setting)).toEqual(await measure(setting));
  });
});
