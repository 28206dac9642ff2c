import { describe, test } from "vitest";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { scale } from "../support/scale.js";
import { blockPool, naive } from "../support/subjects.js";
import { commit, commitForeign } from "./misuse.js";
import { replayTrace } from "./replay.js";
import { readPanics, readTraces, type Trace } from "./trace.js";

const LARGE_LINES = 5_000;
const traces = readTraces();
const panics = readPanics();

function conformance<P extends PoolUnderTest>(subject: Subject<P>): void {
  describe(`${subject.name}: recorded traces`, () => {
    for (const trace of traces) {
      test(`${trace.file}: ${trace.note}`, () => replayTrace(subject, atScale(trace), verifyEvery(trace)));
    }
  });
  describe(`${subject.name}: recorded misuse is refused and changes nothing`, () => {
    for (const panic of panics.filter((panic) => !panic.foreign)) {
      test(`${panic.name}: ${panic.note}`, () => commit(subject, panic));
    }
  });
  describe(`${subject.name}: reservations of another pool are refused and change neither pool`, () => {
    for (const panic of panics.filter((panic) => panic.foreign)) {
      test(`${panic.name}: ${panic.note}`, () => commitForeign(subject, panic));
    }
  });
}

/** Large traces are cut in the quick loop. */
function atScale(trace: Trace): Trace {
  if (scale >= 1 || trace.lines.length < LARGE_LINES) return trace;
  return { ...trace, lines: trace.lines.slice(0, Math.max(LARGE_LINES, trace.lines.length * scale)) };
}

function verifyEvery(trace: Trace): number {
  return trace.lines.length < LARGE_LINES ? 1 : 101;
}

conformance(naive);
conformance(blockPool);
