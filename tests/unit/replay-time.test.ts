import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createPolicy, POLICY_NAMES, type Policy, type PolicyContext, roundRobin } from "../../src/selection/policy.js";
import { type ReplayOptions, type ReplayReport, type ReplayTiming, replay } from "../../src/sim/replay.js";
import type { TraceRequest } from "../../src/sim/trace.js";
import { NaiveBlocks } from "./replay-naive-blocks.js";
import { serveNaively } from "./replay-naive-fleet.js";
import { NaivePool } from "./replay-naive-pool.js";

// A worker prefills a token in a millisecond, and a block has ten of them.
const RATE: ReplayTiming = { prefillRate: 1000, decodeMsPerToken: 0 };

interface Row extends Partial<TraceRequest> {
  readonly at: number;
  readonly hashes: readonly number[];
}

const request = ({ at, hashes, ...rest }: Row): TraceRequest => ({
  timestampMs: at,
  promptTokens: hashes.length * 10,
  outputTokens: 1,
  blockTokens: 10,
  unit: "token",
  sequenceHashes: BigUint64Array.from(hashes, BigInt),
  ...rest,
});

async function* trace(rows: readonly Row[]): AsyncGenerator<TraceRequest> {
  for (const row of rows) yield request(row);
}

const run = (rows: readonly Row[], options: Partial<ReplayOptions> = {}): Promise<ReplayReport> =>
  replay(trace(rows), {
    policies: [roundRobin()],
    workers: 2,
    blocksPerWorker: 100,
    timing: RATE,
    now: () => 0,
    ...options,
  });

/** Serves every request on the first worker, and notes what it sees of it. */
class Watcher implements Policy {
  readonly name = "watcher";
  readonly hotRequests: number | undefined;
  readonly seen: Record<string, number>[] = [];

  constructor(hotRequests?: number) {
    this.hotRequests = hotRequests;
  }

  choose: Policy["choose"] = ([candidate], _request, context: PolicyContext) => {
    const { activePrefills, activePrefillTokens, activeRequests, activeBlocks, tokensPerMs } = candidate?.load ?? {};
    const { hotBlocks, nowMs, averageMissedTokens } = context;
    const activeOverlapBlocks = candidate?.activeOverlapBlocks;
    const load = {
      activePrefills,
      activePrefillTokens,
      activeRequests,
      activeBlocks,
      tokensPerMs,
      activeOverlapBlocks,
    };
    this.seen.push({ nowMs, hotBlocks, averageMissedTokens, ...load } as Record<string, number>);
    return { index: 0 };
  };
}

const watch = async (rows: readonly Row[], timing: ReplayTiming = RATE, hot?: number): Promise<Watcher["seen"]> => {
  const watcher = new Watcher(hot);
  await run(rows, { policies: [watcher], workers: 1, timing });
  return watcher.seen;
};

const delays = async (rows: readonly Row[], options: Partial<ReplayOptions> = {}): Promise<unknown> => {
  const report = await run(rows, { workers: 1, ...options });
  const { mean = -1, p99 = -1 } = report.policies[0]?.delayMs ?? {};
  return { mean, most: Math.round(p99) };
};

describe("a worker", () => {
  test("serves prefills one after the other, and cached tokens cost nothing", async () => {
    // 0 to 20, 20 to 30 (one block is cached), and 100 to 110.
    const rows = [
      { at: 0, hashes: [1, 2] },
      { at: 5, hashes: [1, 3] },
      { at: 100, hashes: [1, 4] },
    ];
    expect(await delays(rows)).toEqual({ mean: (20 + 25 + 10) / 3, most: 25 });
  });

  test("computes at least one token, and those of a prompt without a full block too", async () => {
    const rows = [
      { at: 0, hashes: [1] },
      { at: 100, hashes: [1] },
      { at: 200, hashes: [], promptTokens: 7 },
      { at: 300, hashes: [1], promptTokens: 3 }, // the last block is partial
    ];
    expect(await delays(rows)).toEqual({ mean: (10 + 1 + 7 + 1) / 4, most: 10 });
  });

  test("lets nobody wait for a request that does not fit into its cache", async () => {
    const rows = [
      { at: 0, hashes: [1, 2, 3] },
      { at: 0, hashes: [4] },
    ];
    const report = await run(rows, { workers: 1, blocksPerWorker: 2 });
    expect(report.policies[0]).toMatchObject({ rejected: 1, delayMs: { mean: 10 } });
  });
});

describe("what a policy sees of a worker", () => {
  test("is booked until the prefill ends, and what ends at a time is gone for who arrives then", async () => {
    const seen = await watch([
      { at: 0, hashes: [1, 2] }, // until 20
      { at: 10, hashes: [1, 3] }, // until 30
      { at: 20, hashes: [4] }, // until 40
      { at: 40, hashes: [5] },
    ]);
    expect(seen.map(({ activePrefills, activePrefillTokens }) => [activePrefills, activePrefillTokens])).toEqual([
      [0, 0],
      [1, 20],
      [1, 10],
      [0, 0],
    ]);
    expect(seen.map(({ tokensPerMs }) => tokensPerMs)).toEqual([0, 0, 1, expect.closeTo(1, 10)]);
    expect(seen.map(({ averageMissedTokens }) => averageMissedTokens)).toEqual([
      0,
      20,
      19.9,
      expect.closeTo(19.801, 9),
    ]);
  });

  test("is in use until the answer ends", async () => {
    const rows = [
      { at: 0, hashes: [1, 2], outputTokens: 4 }, // prefill until 20, answer until 120
      { at: 119, hashes: [1, 3], outputTokens: 0 }, // until 129
      { at: 125, hashes: [1, 2], outputTokens: 0 }, // until 130
      { at: 200, hashes: [1], outputTokens: 0 },
    ];
    const seen = await watch(rows, { ...RATE, decodeMsPerToken: 25 });
    expect(seen.map((one) => [one["activeRequests"], one["activeBlocks"], one["activeOverlapBlocks"]])).toEqual([
      [0, 0, 0],
      [1, 2, 1],
      [1, 2, 1],
      [0, 0, 0],
    ]);
  });

  test("counts four characters of an answer as a token", async () => {
    const rows = [
      { at: 0, hashes: [1], outputTokens: 40, unit: "character" as const }, // prefill until 10, answer until 260
      { at: 259, hashes: [1], unit: "character" as const },
      { at: 266, hashes: [1], unit: "character" as const },
    ];
    const seen = await watch(rows, { prefillRate: 1000 });
    expect(seen.map(({ activeRequests }) => activeRequests)).toEqual([0, 1, 1]);
    const { timing } = await run(rows, { timing: { prefillRate: 1000 } });
    expect(timing).toMatchObject({ unit: "character", decodeMsPerToken: 25, prefillRate: 1000, closedLoop: false });
  });

  test("is hot where enough unfinished prefills begin alike", async () => {
    const rows = [
      { at: 0, hashes: [1, 2] },
      { at: 0, hashes: [1, 3] },
      { at: 0, hashes: [1, 2, 4] },
      { at: 0, hashes: [1, 2, 4] },
      { at: 900, hashes: [1, 2] },
    ];
    const hotBlocks = async (hot?: number): Promise<unknown> =>
      (await watch(rows, RATE, hot)).map((one) => one["hotBlocks"]);
    expect(await hotBlocks(2)).toEqual([0, 0, 1, 2, 0]);
    expect(await hotBlocks(1)).toEqual([0, 1, 2, 3, 0]);
    expect(await hotBlocks()).toEqual([0, 0, 0, 0, 0]);
  });
});

describe("a router that holds requests", () => {
  const hold: ReplayTiming = { ...RATE, hold: true };
  const kv = () => ({ policies: [createPolicy("kv")], workers: 1 });

  test("hands over the one first that has least to compute, when the worker is free", async () => {
    const rows = [
      { at: 0, hashes: [1, 2, 3, 4] }, // until 40
      { at: 1, hashes: [5, 6, 7] }, // after the next one, until 80: 79 ms
      { at: 2, hashes: [1, 2, 3, 4, 8] }, // holds all but one block, until 50: 48 ms
    ];
    expect(await delays(rows, { ...kv(), timing: hold })).toEqual({ mean: (40 + 79 + 48) / 3, most: 79 });
    expect(await delays(rows, { ...kv(), timing: RATE })).toEqual({ mean: (40 + 69 + 78) / 3, most: 78 });
  });

  test("lets long ones gain by waiting, so that none waits for ever behind short ones", async () => {
    const short = Array.from({ length: 40 }, (_, at) => ({ at: at * 9, hashes: [100 + at] }));
    const long = { at: 1, hashes: Array.from({ length: 8 }, (_, block) => block) };
    const rows = [...short, long].sort((a, b) => a.at - b.at);
    const { most } = (await delays(rows, { ...kv(), timing: hold })) as { most: number };
    expect(most).toBeLessThan(360); // it went before the last of the short ones
    expect(most).toBeGreaterThan(150); // and after many
  });

  test("has nothing left to hold when the trace has ended, also where some fit into no cache", async () => {
    const rows = Array.from({ length: 30 }, (_, at) => ({ at, hashes: [at, at + 1, at + 2].slice(0, 1 + (at % 4)) }));
    const report = await run(rows, { ...kv(), workers: 3, blocksPerWorker: 2, timing: hold });
    const [{ rejected = 0, missedBlocks = [] } = {}] = report.policies;
    expect(rejected).toBe(rows.filter(({ hashes }) => hashes.length > 2).length);
    expect(missedBlocks.reduce((sum, blocks) => sum + blocks, 0)).toBeGreaterThan(0);
  });

  test("needs a policy with a cost", async () => {
    await expect(run([{ at: 0, hashes: [1] }], { timing: hold })).rejects.toMatchObject({
      code: "KVROUTE_OPTION",
      message: "Expected a policy with a cost to hold requests by (--hold), got round-robin.",
    });
  });
});

describe("a closed loop", () => {
  const closedLoop: ReplayTiming = { ...RATE, decodeMsPerToken: 100, closedLoop: true };
  const rows = [
    { at: 0, hashes: [1], session: "a" }, // prefill until 10, answer until 110
    { at: 5, hashes: [1, 2], session: "a" }, // sent at 110, until 120, answer until 220
    { at: 50, hashes: [7], session: "b" }, // sent at once
    { at: 60, hashes: [1, 2, 3], session: "a" }, // sent at 220
    { at: 400, hashes: [1], session: "a" }, // sent at once
  ];

  test("sends a request when the one before it in its session has been answered", async () => {
    const seen = await watch(rows, closedLoop);
    expect(seen.map(({ nowMs }) => nowMs)).toEqual([0, 50, 110, 220, 400]);
    expect(await delays(rows, { timing: closedLoop })).toEqual({ mean: (10 + 10 + 10 + 10 + 1) / 5, most: 10 });
  });

  test("goes on after a request that fits into no cache", async () => {
    const big = rows.map((row, at) => (at === 1 ? { ...row, hashes: [1, 2, 3, 4] } : row));
    const report = await run(big, { workers: 1, blocksPerWorker: 3, timing: closedLoop });
    expect(report.policies[0]).toMatchObject({ rejected: 1 });
    const seen = await watch(big, closedLoop);
    expect(seen).toHaveLength(5);
  });

  test("needs a session in every row", async () => {
    await expect(run([{ at: 0, hashes: [1] }], { timing: closedLoop })).rejects.toMatchObject({
      code: "KVROUTE_OPTION",
      message: "Expected a session_id in every row of a closed loop (--closed-loop), got a row without one.",
    });
  });
});

describe("a utilisation", () => {
  const rows = [
    { at: 1000, hashes: [1, 2] }, //    worker 0: 20
    { at: 1100, hashes: [1, 2, 3] }, // worker 1: 30
    { at: 1150, hashes: [1, 2, 4] }, // worker 0: 10
    { at: 1200, hashes: [1, 2] }, //    worker 1: 1
  ];

  test("is that of workers which take turns, from the first timestamp to the last", async () => {
    const { timing, durationMs } = await run(rows, { timing: { utilisation: 0.5 } });
    expect(durationMs).toBe(200);
    expect(timing?.prefillRate).toBeCloseTo(61 / (0.2 * 2 * 0.5), 9);
    expect(timing?.utilisation).toBe(0.5);
  });

  test("gives what the rate that follows from it gives", async () => {
    const byUtilisation = await run(rows, { timing: { utilisation: 0.9 } });
    const { prefillRate } = byUtilisation.timing ?? {};
    const byRate = await run(rows, { timing: { prefillRate } });
    expect(byRate.policies).toEqual(byUtilisation.policies);
  });

  test("needs a trace that takes time", async () => {
    await expect(run([{ at: 3, hashes: [1] }], { timing: { utilisation: 1 } })).rejects.toMatchObject({
      code: "KVROUTE_OPTION",
      message: "Expected a trace that spans some time for a utilisation, got 0 ms.",
    });
  });
});

describe("a limit", () => {
  const rows = [1, 2, 3].map((hash) => ({ at: hash, hashes: [hash] })); // 328 bytes each

  test("holds a trace of just that size, and names the way out of a larger one", async () => {
    const heldBytesMax = 3 * 328;
    await expect(run(rows, { timing: { utilisation: 1, heldBytesMax } })).resolves.toMatchObject({ requests: 3 });
    await expect(run(rows, { timing: { utilisation: 1, heldBytesMax: heldBytesMax - 1 } })).rejects.toMatchObject({
      code: "KVROUTE_REPLAY_LIMIT",
      message:
        "Expected a trace of at most 983 bytes in memory, got a longer one. " +
        "Give --prefill-rate instead of --utilisation: then the trace is not held.",
    });
    await expect(run(rows, { timing: { prefillRate: 1, heldBytesMax: 1 } })).resolves.toMatchObject({ requests: 3 });
  });

  test("bounds the requests that are under way", async () => {
    const slow = { prefillRate: 0.001, unfinishedMax: 3 };
    await expect(run(rows, { timing: slow })).resolves.toMatchObject({ requests: 3 });
    await expect(run(rows, { timing: { ...slow, unfinishedMax: 2 } })).rejects.toMatchObject({
      code: "KVROUTE_REPLAY_LIMIT",
      message:
        "Expected at most 2 unfinished requests with round-robin, got one more. " +
        "Give a higher --prefill-rate or a lower --utilisation, or more --workers.",
    });
  });

  test("bounds those that wait for their session too", async () => {
    const timing = { prefillRate: 0.001, closedLoop: true };
    const sessions = rows.map((row) => ({ ...row, session: "a" }));
    await expect(run(sessions, { timing: { ...timing, unfinishedMax: 3 } })).resolves.toMatchObject({ requests: 3 });
    await expect(run(sessions, { timing: { ...timing, unfinishedMax: 2 } })).rejects.toMatchObject({
      code: "KVROUTE_REPLAY_LIMIT",
    });
  });

  test.each([
    [{}, "Expected either prefillRate or utilisation, got both or none."],
    [{ prefillRate: 1, utilisation: 1 }, "Expected either prefillRate or utilisation, got both or none."],
    [{ prefillRate: 0 }, "Expected prefillRate to be a number above 0 and at most 1000000000000, got 0."],
    [{ utilisation: Number.NaN }, "Expected utilisation to be a number above 0 and at most 100, got NaN."],
    [{ utilisation: 101 }, "Expected utilisation to be a number above 0 and at most 100, got 101."],
    [{ prefillRate: 1, decodeMsPerToken: -1 }, "Expected decodeMsPerToken to be a number from 0 to 1000000, got -1."],
    [
      { prefillRate: 1, unfinishedMax: 0 },
      `Expected unfinishedMax to be a number from 1 to ${Number.MAX_SAFE_INTEGER}, got 0.`,
    ],
    [
      { prefillRate: 1, heldBytesMax: -1 },
      `Expected heldBytesMax to be a number from 0 to ${Number.MAX_SAFE_INTEGER}, got -1.`,
    ],
  ])("refuses %j", async (timing, message) => {
    await expect(run(rows, { timing })).rejects.toMatchObject({ code: "KVROUTE_OPTION", message });
  });
});

describe("with every policy", () => {
  const row = fc.record({
    at: fc.nat(400),
    hashes: fc.array(fc.nat(5), { maxLength: 5 }),
    outputTokens: fc.nat(3),
    session: fc.constantFrom("a", "b", "c"),
  });
  const traces = fc.array(row, { maxLength: 30 });
  const fresh = (): Policy[] => POLICY_NAMES.map((name) => createPolicy(name, name === "kv" ? { hotRequests: 2 } : {}));

  test("gives on real tables what it gives on plain ones, which are empty in the end", async () => {
    const settings = fc.record({ prefillRate: fc.integer({ min: 50, max: 2000 }), closedLoop: fc.boolean() });
    const property = fc.asyncProperty(
      traces,
      settings,
      fc.integer({ min: 2, max: 9 }),
      async (rows, timing, blocks) => {
        const tables: NaiveBlocks[] = [];
        const createBlocks = (): NaiveBlocks => {
          const table = new NaiveBlocks();
          tables.push(table);
          return table;
        };
        const options = (): Partial<ReplayOptions> => ({ policies: fresh(), blocksPerWorker: blocks, timing });
        const naive = await run(rows, {
          ...options(),
          createBlocks,
          createPool: (capacity) => new NaivePool(capacity),
        });
        expect(await run(rows, options())).toEqual(naive);
        for (const { waiting, active, isDisposed } of tables) {
          expect(waiting.size + [...active.values()].reduce((sum, { size }) => sum + size, 0)).toBe(0);
          expect(isDisposed).toBe(true);
        }
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  test("hits and computes the same whatever the speed, where the choice does not depend on it", async () => {
    const property = fc.asyncProperty(traces, fc.integer({ min: 1, max: 2000 }), async (rows, prefillRate) => {
      const policies = (): Policy[] =>
        ["round-robin", "random", "prefix-hash"].map((name) => createPolicy(name as "random"));
      const figures = ({ policies: all }: ReplayReport): unknown =>
        all.map(({ hitRate, missedBlocks, evictions }) => ({ hitRate, missedBlocks, evictions }));
      const timeless = await run(rows, { policies: policies(), timing: undefined, blocksPerWorker: 5 });
      expect(timeless.policies[0]).not.toHaveProperty("delayMs");
      expect(timeless.timing).toBeUndefined();
      const timed = await run(rows, { policies: policies(), timing: { prefillRate }, blocksPerWorker: 5 });
      expect(figures(timed)).toEqual(figures(timeless));
    });
    await fc.assert(property, { numRuns: 40 });
  });
});

test("a fleet is what one gets that goes from millisecond to millisecond", async () => {
  const row = fc.record({
    at: fc.nat(150),
    hashes: fc.array(fc.nat(3), { maxLength: 4 }),
    extra: fc.nat(9),
    outputTokens: fc.nat(3),
    session: fc.constantFrom("a", "b", "c"),
  });
  const setting = fc.record({
    workers: fc.integer({ min: 1, max: 3 }),
    decodeMsPerToken: fc.constantFrom(0, 1, 25),
    closedLoop: fc.boolean(),
  });
  const property = fc.asyncProperty(fc.array(row, { maxLength: 25 }), setting, async (raw, setting) => {
    const rows = raw.map(({ extra, ...rest }) => ({ ...rest, promptTokens: rest.hashes.length * 10 + extra }));
    const { workers, ...timing } = setting;
    const sights: unknown[] = [];
    const inner = roundRobin();
    const choose: Policy["choose"] = (candidates, of, context) => {
      const choice = inner.choose(candidates, of, context);
      const {
        activePrefills = -1,
        activePrefillTokens = -1,
        activeRequests = -1,
      } = candidates[choice.index]?.load ?? {};
      sights.push({ atMs: context.nowMs, activePrefills, activePrefillTokens, activeRequests });
      return choice;
    };
    const policies = [{ name: "watched", choose }];
    const report = await run(rows, { policies, workers, timing: { ...timing, prefillRate: 1000 } });
    const naive = serveNaively(rows.map(request), setting);
    expect(sights).toEqual(naive.sights);
    const delays = [...naive.delays].sort((left, right) => left - right);
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / Math.max(1, delays.length);
    expect(report.policies[0]?.delayMs?.mean).toBeCloseTo(mean, 6);
    const p90 = delays[Math.ceil(0.9 * delays.length) - 1] ?? 0;
    expect(Math.abs((report.policies[0]?.delayMs?.p90 ?? -1) - p90)).toBeLessThanOrEqual(p90 / 2048);
  });
  await fc.assert(property, { numRuns: 400 });
});
