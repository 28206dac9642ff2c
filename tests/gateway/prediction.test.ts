import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  MISMATCH_REPORTS,
  MISMATCH_SHARE,
  PREDICTION_WARNING,
  PREDICTION_WINDOW,
  type PredictionReport,
  PredictionTracker,
  RECOVERY_SHARE,
} from "../../src/gateway/prediction.js";
import { SelectionService } from "../../src/selection/service.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { scaled } from "../support/scale.js";

class Stage {
  readonly warnings: { name: string; message: string }[] = [];
  readonly tracker = new PredictionTracker({ onWarning: (warning) => this.warnings.push(warning) });

  report(predictedTokens: number, cachedTokens: number, times = 1, promptTokens = 100): void {
    for (let time = 0; time < times; time++) this.tracker.report({ predictedTokens, cachedTokens, promptTokens });
  }
}

/** Hashes of a prompt of ten blocks, as one who adds a salt makes them. */
const hashesOf = (salt: bigint) => BigUint64Array.from({ length: 10 }, (_, at) => (salt << 32n) + BigInt(at + 1));

describe("a mismatch", () => {
  test("shows where prompts are hashed otherwise than what the index knows (scenario 39)", () => {
    const stage = new Stage();
    const service = new SelectionService({ clock: new VirtualClock(), random: () => 0.5, kvEvents: false });
    service.workers.add({ workerId: "w1", endpoint: "http://w1", blockSize: 16 });
    const ask = (salt: bigint) => {
      const selection = service.selectAndReserve({ sequenceHashes: hashesOf(salt), islTokens: 160 });
      service.prefillComplete(selection.selectionId);
      service.free(selection.selectionId);
      return selection.cachedTokens;
    };
    ask(1n);
    expect(ask(1n)).toBe(160); // as it should be
    for (let request = 0; request < 100; request++) {
      const predictedTokens = ask(BigInt(request + 2)); // the same text for the engine, each time another one here
      stage.tracker.report({ predictedTokens, cachedTokens: 144, promptTokens: 160 });
    }
    expect(stage.warnings).toEqual([{ name: PREDICTION_WARNING, message: expect.stringContaining("report 90 %") }]);
    expect(stage.tracker.stats).toMatchObject({ reports: 100, isMismatched: true, mismatches: 1, predictedShare: 0 });
    expect(stage.tracker.stats.actualShare).toBeCloseTo(0.9);
  });

  test("is said at the fiftieth report, not before", () => {
    const stage = new Stage();
    stage.report(0, 90, MISMATCH_REPORTS - 1);
    expect(stage.warnings).toEqual([]);
    stage.report(0, 90);
    expect(stage.warnings).toHaveLength(1);
  });

  test("begins above 25 points, in either direction", () => {
    for (const [predicted, actual, warnings] of [
      [0, 25, 0],
      [0, 26, 1],
      [60, 35, 0],
      [60, 34, 1],
    ] as const) {
      const stage = new Stage();
      stage.report(predicted, actual, PREDICTION_WINDOW);
      expect([predicted, actual, stage.warnings.length]).toEqual([predicted, actual, warnings]);
    }
  });

  test("is told once until it has ended, and then again", () => {
    const stage = new Stage();
    stage.report(0, 80, 300);
    expect(stage.warnings).toHaveLength(1);
    stage.report(80, 80, 300);
    expect(stage.tracker.stats).toMatchObject({ isMismatched: false, mismatches: 1 });
    stage.report(0, 80, 300);
    expect(stage.warnings).toHaveLength(2);
    expect(stage.tracker.stats).toMatchObject({ isMismatched: true, mismatches: 2 });
  });

  test("that hovers at the threshold is told once", () => {
    const stage = new Stage();
    for (let round = 0; round < 20; round++) {
      stage.report(0, 30, 100);
      stage.report(0, 20, 100);
    }
    expect(MISMATCH_SHARE - RECOVERY_SHARE).toBeGreaterThan(0.05);
    expect(stage.warnings).toHaveLength(1);
  });

  test("says which way it goes", () => {
    const [low, high] = [new Stage(), new Stage()];
    low.report(80, 0, 50);
    high.report(0, 80, 50);
    expect(low.warnings[0]?.message).toMatch(/^Expected 80 % .* report 0 %: the engines cache nothing/);
    expect(high.warnings[0]?.message).toMatch(/^Expected 0 % .* report 80 %: the hashes of the router/);
  });

  test("is kept where whoever is told throws", () => {
    const tracker = new PredictionTracker({
      onWarning: () => {
        throw new Error("no");
      },
    });
    const report = () => tracker.report({ predictedTokens: 0, cachedTokens: 90, promptTokens: 100 });
    for (let time = 1; time < MISMATCH_REPORTS; time++) report();
    expect(report).toThrow("no");
    expect(tracker.stats).toMatchObject({ isMismatched: true, reports: MISMATCH_REPORTS });
    report();
  });
});

describe("the running figures", () => {
  const report: fc.Arbitrary<PredictionReport> = fc.record({
    predictedTokens: fc.nat(1_000),
    cachedTokens: fc.nat(1_000),
    promptTokens: fc.integer({ min: 1, max: 1_000 }),
  });

  test("are plain means while the window is not full, and weighted ones behind that", () => {
    fc.assert(
      fc.property(fc.array(report, { minLength: 1, maxLength: 300, size: "max" }), (reports) => {
        const tracker = new PredictionTracker();
        for (const one of reports) tracker.report(one);
        const weights = reports.map((_, at) => weightOf(at, reports.length));
        const mean = (of: (predicted: number, actual: number, prompt: number) => number) =>
          reports.reduce((sum, { predictedTokens, cachedTokens, promptTokens = 0 }, at) => {
            const parts = [Math.min(predictedTokens, promptTokens), Math.min(cachedTokens, promptTokens)] as const;
            return sum + of(...parts, promptTokens) * (weights[at] as number);
          }, 0);
        const stats = tracker.stats;
        const prompt = mean((_, __, prompt) => prompt);
        expect(stats.reports).toBe(reports.length);
        expect(stats.meanErrorTokens).toBeCloseTo(
          mean((predicted, actual) => actual - predicted),
          5,
        );
        expect(stats.meanAbsoluteErrorTokens).toBeCloseTo(
          mean((predicted, actual) => Math.abs(actual - predicted)),
          5,
        );
        expect(stats.predictedShare).toBeCloseTo(mean((predicted) => predicted) / prompt, 6);
        expect(stats.actualShare).toBeCloseTo(mean((_, actual) => actual) / prompt, 6);
      }),
      { numRuns: scaled(200) },
    );
  });

  test("are zero while nothing was reported", () => {
    expect(new PredictionTracker().stats).toEqual({
      reports: 0,
      meanErrorTokens: 0,
      meanAbsoluteErrorTokens: 0,
      predictedShare: 0,
      actualShare: 0,
      isMismatched: false,
      mismatches: 0,
    });
  });

  test.each([
    { promptTokens: 0 },
    { promptTokens: undefined },
    { promptTokens: Number.NaN },
    { predictedTokens: -1 },
    { cachedTokens: Number.POSITIVE_INFINITY },
  ])("leave %o out", (wrong) => {
    const tracker = new PredictionTracker();
    tracker.report({ predictedTokens: 1, cachedTokens: 1, promptTokens: 10, ...wrong });
    expect(tracker.stats.reports).toBe(0);
  });
});

/** What a report counts for in the end, told from the list of all. */
function weightOf(at: number, length: number): number {
  let weight = 1 / Math.min(at + 1, PREDICTION_WINDOW);
  for (let later = at + 1; later < length; later++) weight *= 1 - 1 / Math.min(later + 1, PREDICTION_WINDOW);
  return weight;
}
