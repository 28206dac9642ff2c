import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Delays } from "../../src/sim/delays.js";
import { WINDOW_MS, Windows } from "../../src/sim/windows.js";

const summaryOf = (delays: readonly number[]): ReturnType<Delays["summary"]> => {
  const histogram = new Delays();
  for (const delay of delays) histogram.add(delay);
  return histogram.summary();
};

describe("delays", () => {
  test("are those of a sorted list, but for one part in 2,048", () => {
    const delay = fc.oneof(fc.double({ min: 0.001, max: 1e9, noNaN: true }), fc.integer({ min: 1, max: 20 }));
    const property = fc.property(fc.array(delay, { minLength: 1, maxLength: 300 }), (delays) => {
      const sorted = [...delays].sort((left, right) => left - right);
      const summary = summaryOf(delays);
      for (const [name, part] of [["p50", 0.5] as const, ["p90", 0.9] as const, ["p99", 0.99] as const]) {
        const exact = sorted[Math.ceil(part * sorted.length) - 1] as number;
        expect(Math.abs(summary[name] / exact - 1)).toBeLessThanOrEqual(1 / 2048);
      }
      const mean = sorted.reduce((total, one) => total + one, 0) / sorted.length;
      expect(summary.mean).toBeCloseTo(mean, 6);
    });
    fc.assert(property, { numRuns: 300 });
  });

  test("are exact where all are equal", () => {
    expect(summaryOf([7, 7, 7])).toEqual({ mean: 7, p50: 7, p90: 7, p99: 7 });
    expect(summaryOf([0, 0])).toEqual({ mean: 0, p50: 0, p90: 0, p99: 0 });
  });

  test("are zero where there are none", () => {
    expect(summaryOf([])).toEqual({ mean: 0, p50: 0, p90: 0, p99: 0 });
  });

  test("beyond the range of the steps are still counted", () => {
    expect(summaryOf([1e-9, 1e-9, 1e15])).toMatchObject({ p50: expect.closeTo(0.001, 3), p99: expect.any(Number) });
    expect(summaryOf([1e15]).p99).toBe(1e15);
  });
});

describe("the imbalance within windows", () => {
  const imbalance = (workers: number, work: readonly (readonly [worker: number, blocks: number, ms: number])[]) => {
    const windows = new Windows(workers);
    for (const [worker, blocks, ms] of work) windows.add(worker, blocks, ms);
    return windows.imbalance();
  };

  test("is averaged over windows that start with the first work", () => {
    const even = [[0, 4, 500] as const, [1, 4, 500 + WINDOW_MS - 1] as const];
    expect(imbalance(2, even)).toBe(1);
    expect(imbalance(2, [...even, [0, 4, 500 + WINDOW_MS]])).toBe(1.5);
  });

  test("leaves out windows without work, however many", () => {
    expect(
      imbalance(4, [
        [0, 1, 0],
        [1, 0, 9 * WINDOW_MS],
        [2, 1, 1e9 * WINDOW_MS],
      ]),
    ).toBe(4);
    expect(imbalance(4, [])).toBe(1);
    expect(imbalance(4, [[3, 0, 5]])).toBe(1);
  });

  test("is that of all the work where it is done within one window", () => {
    const property = fc.property(
      fc.array(fc.tuple(fc.nat(3), fc.nat(9), fc.nat(WINDOW_MS - 1)), { maxLength: 40 }),
      (work) => {
        const sorted = [...work].sort((left, right) => left[2] - right[2]);
        const blocks = [0, 0, 0, 0];
        for (const [worker, missed] of sorted) blocks[worker] = (blocks[worker] as number) + missed;
        const total = blocks.reduce((sum, missed) => sum + missed, 0);
        expect(imbalance(4, sorted)).toBe(total === 0 ? 1 : Math.max(...blocks) / (total / 4));
      },
    );
    fc.assert(property);
  });
});
