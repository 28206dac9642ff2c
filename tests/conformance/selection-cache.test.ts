import { describe, test } from "vitest";
import { naiveCache } from "../model/selection-cache-naive.js";
import { type CacheSubject, type CacheUnderTest, selectionCache } from "../model/selection-cache-subject.js";
import { scale } from "../support/scale.js";
import { LARGE_LINES, replayTrace } from "./selection-cache-replay.js";
import { readTraces, type Trace } from "./selection-cache-trace.js";

const traces = readTraces();

function conformance<C extends CacheUnderTest>(subject: CacheSubject<C>, share: number): void {
  describe(`${subject.name}: recorded traces`, () => {
    for (const trace of traces) {
      test(`${trace.file}: ${trace.header.note}`, () => replayTrace(subject, cut(trace, share)));
    }
  });
}

/** Large traces are cut in the quick loop, and for the naive cache, whose operations take longer the more it holds. */
function cut(trace: Trace, share: number): Trace {
  const { length } = trace.lines;
  if (share >= 1 || length < LARGE_LINES) return trace;
  return { ...trace, lines: trace.lines.slice(0, Math.max(LARGE_LINES / 4, length * share)) };
}

conformance(naiveCache, 0);
conformance(selectionCache, scale);
