import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createPolicy, kv, type Policy, type PolicyName } from "../../src/selection/policy.js";
import { formatRow } from "../../src/sim/generate.js";
import { type PolicyReport, replay } from "../../src/sim/replay.js";
import { generateStress, STRESS_NAMES, STRESS_PREFILL_RATE, type StressName } from "../../src/sim/stress.js";
import { readTrace } from "../../src/sim/trace.js";

// The figures are those of the study that the policies come from: 8 workers, or 4 for one prompt at a time.

const text = (name: StressName, seed?: number): string => [...generateStress(name, { seed })].map(formatRow).join("");
const digest = (trace: string): string => createHash("sha256").update(trace).digest("hex").slice(0, 16);

const measure = async (
  name: StressName,
  policies: readonly Policy[],
  seed?: number,
): Promise<readonly PolicyReport[]> => {
  const workers = name === "one-at-a-time" ? 4 : 8;
  const timing = { prefillRate: STRESS_PREFILL_RATE };
  const requests = readTrace(new Blob([text(name, seed)]).stream());
  const options = { policies, workers, blocksPerWorker: 4_000, timing, now: () => 0 };
  return (await replay(requests, options)).policies;
};

const figures = async (name: StressName, policy: PolicyName | Policy): Promise<PolicyReport> =>
  (await measure(name, [typeof policy === "string" ? createPolicy(policy) : policy]))[0] as PolicyReport;

const seconds = ({ delayMs }: PolicyReport): { mean: number; p99: number } => ({
  mean: (delayMs?.mean ?? -1) / 1000,
  p99: (delayMs?.p99 ?? -1) / 1000,
});

describe("a stress trace", () => {
  test("has the same bytes for the same seed, on every runtime", () => {
    expect(STRESS_NAMES.map((name) => digest(text(name)))).toEqual([
      "1750b414b303be07",
      "05efdf42e859140e",
      "64e5f5744c5655d5",
      "be71f2c0789137c1",
    ]);
    expect(digest(text("hot", 1))).not.toBe(digest(text("hot")));
  });

  test("is in order of arrival", () => {
    for (const name of STRESS_NAMES) {
      const times = [...generateStress(name)].map(({ timestamp }) => timestamp);
      expect(times).toEqual([...times].sort((left, right) => left - right));
    }
  });

  test("is refused when nobody knows its name", () => {
    expect(() => generateStress("cold" as StressName)).toThrow(
      expect.objectContaining({
        code: "KVROUTE_OPTION",
        message: "Expected a stress trace among hot, burst, document, one-at-a-time, got cold.",
      }),
    );
  });
});

describe("a hot prefix, three times what one worker can do", () => {
  test.each([0, 1, 2])("is spread by kv at once (seed %i)", async (seed) => {
    const [report] = await measure("hot", [kv()], seed);
    expect(report?.imbalance).toBeLessThanOrEqual(1.05);
    expect(report?.hitRate).toBeCloseTo(0.933, 3);
    expect((report?.delayMs?.p99 ?? Number.NaN) / 1000).toBeLessThanOrEqual(0.7);
    expect((report?.delayMs?.mean ?? Number.NaN) / 1000).toBeCloseTo(0.08, 2);
  });

  test("drowns one worker where load does not count", async () => {
    for (const name of ["longest-prefix", "prefix-hash", "cache-aware"] as const) {
      const report = await figures("hot", name);
      expect(report.imbalance).toBeGreaterThan(6.9);
      expect(Math.abs(seconds(report).p99 / 490 - 1)).toBeLessThanOrEqual(0.05);
    }
  });

  test("needs the exemption from the tax", async () => {
    const { p99 } = seconds(await figures("hot", kv({ hotRequests: 1_000_000 })));
    expect(p99).toBeGreaterThan(2);
  });
});

describe("a burst of questions to a prefix that nobody has seen", () => {
  test("waits under kv at most 2 % longer than where nothing is taxed", async () => {
    const taxed = await figures("burst", "kv");
    const greedy = await figures("burst", kv({ baseTax: 0, queueTax: 0 }));
    expect(seconds(taxed).mean).toBeLessThanOrEqual(1.02 * seconds(greedy).mean);
    expect(seconds(taxed).p99).toBeLessThanOrEqual(1.02 * seconds(greedy).p99);
    expect(taxed.hitRate).toBeCloseTo(0.9503, 3);
    expect(Math.abs(seconds(taxed).mean / 3.96 - 1)).toBeLessThanOrEqual(0.02);
  });

  test("queues up behind one worker where load does not count", async () => {
    const { mean, p99 } = seconds(await figures("burst", "longest-prefix"));
    expect(Math.abs(mean / 14.62 - 1)).toBeLessThanOrEqual(0.02);
    expect(Math.abs(p99 / 25.61 - 1)).toBeLessThanOrEqual(0.02);
  });
});

describe("a question a second to one long document", () => {
  test("stays under kv on the worker that has read it", async () => {
    const report = await figures("document", "kv");
    expect(report.hitRate).toBeCloseTo(0.938, 3);
    expect(seconds(report).mean).toBeCloseTo(0.56, 2);
    expect(seconds(report).p99).toBeCloseTo(5.36, 1);
  });

  test("is read by every worker where the cache does not count", async () => {
    const report = await figures("document", "round-robin");
    expect(report.hitRate).toBeCloseTo(0.9161, 3);
    expect(seconds(report).mean).toBeCloseTo(0.6, 2);
    expect(seconds(report).p99).toBeCloseTo(7.11, 1);
  });
});

test("one prompt at a time is shared exactly evenly by kv and its presets", async () => {
  for (const name of ["kv", "latency-first", "cache-first", "round-robin"] as const) {
    expect((await figures("one-at-a-time", name)).missedBlocks).toEqual([1000, 1000, 1000, 1000]);
  }
});
