import fc from "fast-check";
import { expect, test } from "vitest";
import { Prng } from "../../src/sim/prng.js";
import { scaled } from "../support/scale.js";
import type { NaiveOptions } from "./engine-naive.js";
import { EngineWalk, type Step } from "./engine-walk.js";

const options: fc.Arbitrary<NaiveOptions> = fc.record({
  numGpuBlocks: fc.integer({ min: 1, max: 12 }),
  blockSize: fc.integer({ min: 1, max: 4 }),
  maxNumSeqs: fc.integer({ min: 1, max: 5 }),
  maxNumBatchedTokens: fc.integer({ min: 1, max: 20 }),
  enableChunkedPrefill: fc.boolean(),
  enablePrefixCaching: fc.boolean(),
});

// Few tokens, so that prompts share their beginnings.
const prompt = fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 24 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("add" as const), prompt, maxTokens: fc.integer({ min: 1, max: 12 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("abort" as const), which: fc.nat(20) }) },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("pass" as const),
        abortWithin: fc.option(fc.nat(20), { nil: undefined, freq: 8 }),
      }),
    },
  ),
  { maxLength: 60 },
);

test("the scheduler does what a naive one does, and loses neither blocks nor tokens nor requests", () => {
  fc.assert(
    fc.property(options, steps, (some, sequence) => {
      const walk = new EngineWalk(some);
      walk.run(sequence);
      walk.drain();
    }),
    { numRuns: scaled(400) },
  );
});

test("every short sequence of small steps", () => {
  const small: Step[] = [
    { kind: "add", prompt: [0, 0, 0], maxTokens: 3 },
    { kind: "add", prompt: [0, 0, 1, 1, 0], maxTokens: 2 },
    { kind: "add", prompt: [1], maxTokens: 6 },
    { kind: "abort", which: 0 },
    { kind: "pass" },
    { kind: "pass", abortWithin: 1 },
  ];
  const tight = { numGpuBlocks: 4, blockSize: 2, maxNumSeqs: 3, maxNumBatchedTokens: 4 };
  let walks = 0;
  const extend = (sequence: readonly Step[], left: number): void => {
    if (left === 0) {
      const walk = new EngineWalk({ ...tight, enableChunkedPrefill: true, enablePrefixCaching: true });
      walk.run(sequence);
      walk.drain();
      walks++;
      return;
    }
    for (const step of small) extend([...sequence, step], left - 1);
  };
  extend([], 4);
  expect(walks).toBe(6 ** 4);
});

test("a long run under pressure: preemptions, evictions, aborts", () => {
  const chance = new Prng(7);
  const walk = new EngineWalk({
    numGpuBlocks: 40,
    blockSize: 4,
    maxNumSeqs: 8,
    maxNumBatchedTokens: 32,
    enableChunkedPrefill: true,
    enablePrefixCaching: true,
  });
  const beginnings = Array.from({ length: 5 }, () => Array.from({ length: 24 }, () => chance.below(4)));
  for (let step = 0; step < scaled(3_000); step++) {
    const kind = chance.below(10);
    if (kind < 2 && walk.scheduler.numWaiting < 12) {
      const shared = (beginnings[chance.below(5)] as number[]).slice(0, 1 + chance.below(24));
      const own = Array.from({ length: chance.below(40) }, () => chance.below(4));
      walk.step({ kind: "add", prompt: [...shared, ...own], maxTokens: 1 + chance.below(40) });
    } else if (kind === 2 && chance.below(4) === 0) {
      walk.step({ kind: "abort", which: chance.below(20) });
    } else {
      walk.step({ kind: "pass", abortWithin: chance.below(20) === 0 ? chance.below(20) : undefined });
    }
  }
  expect(walk.scheduler.preemptions).toBeGreaterThan(10);
  expect(walk.scheduler.prefixHits).toBeGreaterThan(100);
  walk.drain();
});
