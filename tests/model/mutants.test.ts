import { describe, expect, test } from "vitest";
import { commit, commitForeign } from "../conformance/misuse.js";
import { replayTrace } from "../conformance/replay.js";
import { readPanics, readTraces } from "../conformance/trace.js";
import type { Subject } from "../support/pool-under-test.js";
import { explore, filled } from "./explorer.js";
import { laws } from "./laws/all.js";
import { type Mutant, mutants } from "./mutants.js";
import type { NaivePool } from "./naive-pool.js";
import { randomWalk } from "./random-walk.js";
import { extreme, small } from "./spaces.js";

// Every suite is run on pools that are wrong on purpose. A suite that lets one pass has a hole.

const SMALL_LINES = 2_000;
const traces = readTraces().filter((trace) => trace.lines.length < SMALL_LINES);
const panics = readPanics();

const suites: Readonly<Record<Mutant["seenBy"][number], (subject: Subject<NaivePool>) => void>> = {
  "the recorded traces": (subject) => {
    for (const trace of traces) replayTrace(subject, trace, SMALL_LINES);
    for (const panic of panics) (panic.foreign ? commitForeign : commit)(subject, panic);
  },
  "the laws": (subject) => {
    for (const { holds } of Object.values(laws).flat()) holds((options) => subject.create(options));
  },
  "the exhaustive test": (subject) => {
    for (const start of ["AA", "AB", "AAA", "AAB"]) {
      explore(subject, { capacity: start.length, depth: 3, start: filled(start) });
    }
  },
  "random calls": (subject) => {
    for (const space of [small, extreme]) {
      randomWalk(subject, { space, runs: 200, commandsMax: 100, shrink: false, replay: { seed: 1 } });
    }
  },
};

describe.each(mutants)("$subject.name is rejected", ({ subject, seenBy }) => {
  test.each(seenBy)("by %s", (suite) => {
    expect(() => suites[suite](subject)).toThrow();
  });
});
