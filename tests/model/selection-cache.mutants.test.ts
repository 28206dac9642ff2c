import { describe, expect, test } from "vitest";
import { LARGE_LINES, replayTrace } from "../conformance/selection-cache-replay.js";
import { readTraces } from "../conformance/selection-cache-trace.js";
import { randomCalls } from "./selection-cache-calls.js";
import { boundLaws } from "./selection-cache-laws-bounds.js";
import { lifeLaws } from "./selection-cache-laws-life.js";
import { mutants } from "./selection-cache-mutants.js";
import type { NaiveCache } from "./selection-cache-naive.js";
import type { CacheSubject } from "./selection-cache-subject.js";

// Every suite is run on caches that are wrong on purpose. A suite that lets one pass has a hole.

const traces = readTraces().filter(({ lines }) => lines.length < LARGE_LINES);

const suites: Readonly<Record<string, (subject: CacheSubject<NaiveCache>) => void>> = {
  "the recorded traces": (subject) => {
    for (const trace of traces) replayTrace(subject, trace);
  },
  "the laws": (subject) => {
    for (const { holds } of Object.values({ ...lifeLaws, ...boundLaws }).flat())
      holds((options) => subject.create(options));
  },
  "random calls": (subject) => randomCalls(subject, { runs: 300, callsMax: 60, seed: 1 }),
};

describe.each(mutants)("$name is rejected", (subject) => {
  test.each(Object.keys(suites))("by %s", (suite) => {
    expect(() => suites[suite]?.(subject)).toThrow();
  });
});
