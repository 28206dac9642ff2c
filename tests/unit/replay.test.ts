import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createPolicy, POLICY_NAMES, type Policy, type PolicyContext, roundRobin } from "../../src/selection/policy.js";
import { type ReplayOptions, type ReplayReport, replay } from "../../src/sim/replay.js";
import type { TraceRequest } from "../../src/sim/trace.js";
import { NaivePool } from "./replay-naive-pool.js";

const request = (hashes: readonly number[], timestampMs = 0): TraceRequest => ({
  timestampMs,
  promptTokens: hashes.length * 512,
  outputTokens: 1,
  blockTokens: 512,
  unit: "token",
  sequenceHashes: BigUint64Array.from(hashes, BigInt),
});

async function* trace(prompts: readonly (readonly number[])[]): AsyncGenerator<TraceRequest> {
  for (const hashes of prompts) yield request(hashes);
}

const stillClock = (): number => 0;

const run = (prompts: readonly (readonly number[])[], options: Partial<ReplayOptions> = {}): Promise<ReplayReport> =>
  replay(trace(prompts), { policies: [roundRobin()], workers: 2, blocksPerWorker: 3, now: stillClock, ...options });

describe("a replay", () => {
  // In turn: worker 0 takes the first row, worker 1 the second. Three blocks fit into each cache.
  const prompts = [
    [1, 2], //       worker 0 misses 2
    [1, 2], //       worker 1 misses 2
    [1, 2, 3], //    worker 0 hits 2, misses 1
    [4, 5, 6], //    worker 1 misses 3, evicts 1 and 2
    [1, 7], //       worker 0 hits 1, misses 1, evicts the leaf 3
    [], //           worker 1 has nothing to compute
    [1, 2, 3, 4], // worker 0 has no room for four
    [1, 2], //       worker 1 misses 2, evicts 6 and 5
    [1, 2], //       worker 0 hits 2
  ];

  test("counts hits, misses, evictions and rejections as one does by hand", async () => {
    expect(await run(prompts)).toEqual({
      requests: 9,
      emptyRequests: 1,
      blocks: 20,
      durationMs: 0,
      policies: [
        {
          policy: "round-robin",
          hitRate: 5 / 16,
          imbalance: 7 / 5.5,
          evictions: 5,
          missedBlocks: [4, 7],
          rejected: 1,
          requestsPerSecond: 0,
        },
      ],
    });
  });

  test("evicts nothing while there is room", async () => {
    const report = await run(prompts, { blocksPerWorker: "infinite" });
    expect(report.policies[0]).toMatchObject({ evictions: 0, rejected: 0, missedBlocks: [5, 5] });
  });

  test("gives on real pools what it gives on plain lists", async () => {
    const anyTrace = fc.array(fc.array(fc.nat(6), { maxLength: 5 }), { maxLength: 40 });
    const property = fc.asyncProperty(anyTrace, fc.integer({ min: 1, max: 9 }), async (any, blocksPerWorker) => {
      const options = (): Partial<ReplayOptions> => ({
        policies: POLICY_NAMES.map((name) => createPolicy(name)),
        blocksPerWorker,
      });
      const naive = await run(any, { ...options(), createPool: (capacity) => new NaivePool(capacity) });
      expect(await run(any, options())).toEqual(naive);
    });
    await fc.assert(property, { numRuns: 60 });
  });

  test("gives every policy a fleet of its own, whoever stands beside it", async () => {
    const together = await run(prompts, { policies: POLICY_NAMES.map((name) => createPolicy(name)), seed: 3 });
    for (const [at, name] of POLICY_NAMES.entries()) {
      const alone = await run(prompts, { policies: [createPolicy(name)], seed: 3 });
      expect(alone.policies[0]).toEqual(together.policies[at]);
    }
  });

  test("depends on the seed alone for its chance", async () => {
    const many = Array.from({ length: 600 }, (_, at) => [at % 50, 1000 + at]);
    const chance = async (seed?: number): Promise<unknown> =>
      (await run(many, { policies: [createPolicy("random")], seed })).policies[0]?.missedBlocks;
    expect(await chance(1)).toEqual(await chance(1));
    expect(await chance(0)).toEqual(await chance());
    expect(await chance(1)).not.toEqual(await chance(2));
  });

  test("of nothing to compute is even, and hits nothing", async () => {
    const report = await run([[], []]);
    expect(report.policies[0]).toMatchObject({ hitRate: 0, imbalance: 1, evictions: 0, missedBlocks: [0, 0] });
  });

  test("does not count a rejected request as work", async () => {
    const report = await run([[1, 2, 3, 4]]);
    expect(report.policies[0]).toMatchObject({ hitRate: 0, imbalance: 1, missedBlocks: [0, 0], rejected: 1 });
  });

  test("hands every request of a long trace to the policy once, in order", async () => {
    const seen: number[] = [];
    const watching: Policy = {
      name: "watching",
      choose: (_candidates, { sequenceHashes }) => {
        seen.push(Number(sequenceHashes[0]));
        return { index: 0 };
      },
    };
    const order = Array.from({ length: 1_000 }, (_, at) => at);
    const report = await run(
      order.map((at) => [at]),
      { policies: [watching] },
    );
    expect(seen).toEqual(order);
    expect(report.requests).toBe(1_000);
  });

  test("measures its speed by the clock that it is given", async () => {
    let nowMs = 0;
    const now = (): number => {
      nowMs += 10;
      return nowMs;
    };
    expect((await run(prompts, { now })).policies[0]?.requestsPerSecond).toBe(900);
  });
});

describe("what a policy sees", () => {
  test("is the trace's clock, which never runs backwards", async () => {
    const times: number[] = [];
    const watching: Policy = {
      name: "watching",
      choose: (_candidates, _request, context: PolicyContext) => {
        times.push(context.nowMs);
        return { index: 0 };
      },
    };
    async function* stamped(): AsyncGenerator<TraceRequest> {
      for (const timestampMs of [3, 10, 7, 12]) yield request([1], timestampMs);
    }
    const report = await replay(stamped(), { policies: [watching], workers: 1, blocksPerWorker: 1, now: stillClock });
    expect(times).toEqual([3, 10, 10, 12]);
    expect(report.durationMs).toBe(9);
  });

  test("is the work that each worker has had, and the overlap with what it holds", async () => {
    const seen: unknown[] = [];
    const watching: Policy = {
      name: "watching",
      choose: (candidates) => {
        seen.push(candidates.map(({ overlapBlocks, load }) => [overlapBlocks, load.missedBlocks]));
        return { index: seen.length % 2 };
      },
    };
    await run([[1, 2], [1, 2, 3], [1, 9], []], { policies: [watching] });
    expect(seen).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      [
        [0, 0],
        [2, 2],
      ],
      [
        [1, 3],
        [1, 2],
      ],
      [
        [0, 3],
        [0, 3],
      ],
    ]);
  });

  test("costs a look into the cache only when it is read, and only once", async () => {
    let matches = 0;
    class CountingPool extends NaivePool {
      override matchPrefix(hashes: BigUint64Array): { resident: number } {
        matches++;
        return super.matchPrefix(hashes);
      }
    }
    const createPool = (capacity: number): NaivePool => new CountingPool(capacity);
    const prompts = [[1], [2], [3]];
    const readers = ["kv", "latency-first", "cache-first", "dynamo", "cache-aware", "longest-prefix"];
    for (const name of POLICY_NAMES) {
      matches = 0;
      await run(prompts, { policies: [createPolicy(name)], createPool });
      expect(matches).toBe(readers.includes(name) ? 6 : 0);
    }
  });
});

describe("a replay that fails", () => {
  test("passes the failure of its trace on and lets go of its pools", async () => {
    const pools: NaivePool[] = [];
    const createPool = (capacity: number): NaivePool => {
      const pool = new NaivePool(capacity);
      pools.push(pool);
      return pool;
    };
    const fault = new Error("no more");
    async function* broken(): AsyncGenerator<TraceRequest> {
      yield request([1]);
      throw fault;
    }
    const options = { policies: [roundRobin()], workers: 3, blocksPerWorker: 1, now: stillClock, createPool };
    await expect(replay(broken(), options)).rejects.toBe(fault);
    expect(pools.map((pool) => pool.isDisposed)).toEqual([true, true, true]);
  });

  test("names the policy that chose a worker who is not there", async () => {
    const lost: Policy = { name: "lost", choose: () => ({ index: 2 }) };
    await expect(run([[1]], { policies: [lost] })).rejects.toMatchObject({
      code: "KVROUTE_OPTION",
      message: "Expected lost to choose an index from 0 to 1, got 2.",
    });
  });

  test.each([
    [{ workers: 0 }, "Expected workers to be a whole number from 1 to 1024, got 0."],
    [{ workers: 1025 }, "Expected workers to be a whole number from 1 to 1024, got 1025."],
    [{ blocksPerWorker: 1.5 }, "Expected blocksPerWorker to be a whole number from 1 to 16777215, got 1.5."],
    [{ blocksPerWorker: 2 ** 24 }, "Expected blocksPerWorker to be a whole number from 1 to 16777215, got 16777216."],
    [{ seed: -1 }, "Expected a seed from 0 to 9007199254740991, got -1."],
  ])("refuses %j", async (options, message) => {
    await expect(run([[1]], options)).rejects.toMatchObject({ code: "KVROUTE_OPTION", message });
  });
});
