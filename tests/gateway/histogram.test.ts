import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BOUNDS_MAX,
  Histogram,
  INTER_TOKEN_BOUNDS,
  REQUEST_BOUNDS,
  ROUTING_BOUNDS,
  TTFT_BOUNDS,
} from "../../src/gateway/histogram.js";
import { scaled } from "../support/scale.js";

/** Counts by walking all bounds. */
function naive(bounds: readonly number[], values: readonly (readonly [number, number])[]) {
  const counts = [...bounds, Number.POSITIVE_INFINITY].map((bound, at) => {
    const below = at === 0 ? Number.NEGATIVE_INFINITY : (bounds[at - 1] as number);
    return values.filter(([value]) => value > below && value <= bound).reduce((sum, [, times]) => sum + times, 0);
  });
  return { bounds, counts, count: counts.reduce((sum, count) => sum + count, 0) };
}

describe("a histogram", () => {
  test("counts each value in the bucket in which it lies, its upper end included", () => {
    const value = fc.oneof(fc.constantFrom(1, 2, 4, 8), fc.double({ min: 0, max: 10, noNaN: true }));
    const values = fc.array(fc.tuple(value, fc.integer({ min: 1, max: 5 })));
    const bounds = fc.constantFrom([1], [1, 2], [1, 2, 4, 8], [0.5, 2, 4.25]);
    fc.assert(
      fc.property(bounds, values, (bounds, values) => {
        const histogram = new Histogram(bounds);
        for (const [value, times] of values) histogram.observe(value, times);
        const { sum, ...rest } = histogram.snapshot();
        expect(rest).toEqual(naive(bounds, values));
        expect(sum).toBeCloseTo(
          values.reduce((sum, [value, times]) => sum + value * times, 0),
          6,
        );
      }),
      { numRuns: scaled(1_000) },
    );
  });

  test("takes a negative time for none, and leaves out what is no finite number", () => {
    const histogram = new Histogram([1, 2]);
    for (const value of [-5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) histogram.observe(value);
    expect(histogram.snapshot()).toEqual({ bounds: [1, 2], counts: [1, 0, 0], sum: 0, count: 1 });
  });

  test("gives snapshots that later values leave alone", () => {
    const histogram = new Histogram([1]);
    const before = histogram.snapshot();
    histogram.observe(0.5);
    expect(before).toEqual({ bounds: [1], counts: [0, 0], sum: 0, count: 0 });
  });

  test.each([[[]], [[1, 1]], [[2, 1]], [[Number.NaN]], [[1, Number.POSITIVE_INFINITY]]])(
    "refuses the bounds %j",
    (bounds) => {
      expect(() => new Histogram(bounds)).toThrow(/^Expected bounds to be /);
    },
  );

  test("has as many bounds as it may, and no more", () => {
    const bounds = Array.from({ length: BOUNDS_MAX }, (_, at) => at);
    expect(new Histogram(bounds).snapshot().counts).toHaveLength(BOUNDS_MAX + 1);
    expect(() => new Histogram([...bounds, BOUNDS_MAX])).toThrow(/^Expected bounds to be 1 to 256 /);
  });
});

test.each([
  [ROUTING_BOUNDS, 1e-5, 1],
  [TTFT_BOUNDS, 1e-3, 120],
  [INTER_TOKEN_BOUNDS, 5e-4, 5],
  [REQUEST_BOUNDS, 1e-3, 600],
])("the bounds %j ascend from %d to %d", (bounds, least, most) => {
  expect([bounds[0], bounds.at(-1)]).toEqual([least, most]);
  expect(new Histogram(bounds).snapshot().bounds).toEqual(bounds);
});
