import fc from "fast-check";
import { describe, test } from "vitest";
import { scaled } from "../support/scale.js";
import { type Call, compare, randomCalls } from "./selection-cache-calls.js";
import { selectionCache } from "./selection-cache-subject.js";

const home = { modelName: "m", routingGroup: "g" };

/** Inserts with an anchor each, and a discard after some of them. */
function anchored(anchors: readonly number[], discards: readonly number[]): Call[] {
  const calls: Call[] = [];
  for (const [index, anchor] of anchors.entries()) {
    calls.push({ verb: "insert", at: home, id: `${index}`, hashes: 0, loraName: undefined, nowMs: 0, anchor });
    const victim = discards[index];
    if (victim !== undefined) calls.push({ verb: "discard", at: home, id: `${victim}` });
  }
  return calls;
}

describe("SelectionCache beside the naive one", () => {
  test("does the same under random calls", () => {
    randomCalls(selectionCache, { runs: scaled(600), callsMax: 60 });
  });

  test("does the same with many late anchors, in a heap several levels deep", () => {
    const anchors = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 30, maxLength: 120, size: "max" });
    const discards = fc.array(fc.nat(119), { maxLength: 120, size: "max" });
    const property = fc.property(anchors, discards, fc.integer({ min: 20, max: 80 }), (times, victims, maxEntries) => {
      compare(selectionCache, { maxEntries }, anchored(times, victims));
    });
    fc.assert(property, { numRuns: scaled(30) });
  });
});
