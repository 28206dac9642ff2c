import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionTable } from "../../src/selection/sessions.js";
import { scaled } from "../support/scale.js";
import { NaiveSessions } from "./sessions-naive.js";

type Step =
  | { readonly verb: "find"; readonly tenant: string; readonly session: string }
  | { readonly verb: "forget"; readonly tenant: string; readonly session: string }
  | { readonly verb: "record"; readonly tenant: string; readonly session: string; readonly worker: number }
  | { readonly verb: "removeWorker"; readonly worker: number }
  | { readonly verb: "removeRank"; readonly worker: number; readonly rank: number }
  | { readonly verb: "advance"; readonly ms: number };

/** Plays steps on the table and on the naive one and compares all that either says. */
function play(steps: readonly Step[], maxSessions: number, idleMs: number): void {
  const table = new SessionTable({ maxSessions, idleMs });
  const naive = new NaiveSessions(maxSessions, idleMs);
  let nowMs = 0;
  for (const step of steps) {
    if (step.verb === "advance") nowMs += step.ms;
    else expect(answer(table, step, nowMs)).toEqual(answer(naive, step, nowMs));
    if (table.size !== naive.size) expect(table.size).toBe(naive.size);
    if (table.size > maxSessions) expect(table.size).toBeLessThanOrEqual(maxSessions);
    const { evicted, expired } = table.stats;
    if (evicted !== naive.evicted || expired !== naive.expired) {
      expect({ evicted, expired }).toEqual({ evicted: naive.evicted, expired: naive.expired });
    }
  }
}

function answer(table: SessionTable | NaiveSessions, step: Exclude<Step, { verb: "advance" }>, nowMs: number) {
  if (step.verb === "find") return table.find(step.tenant, step.session, nowMs);
  if (step.verb === "forget") return table.forget(step.tenant, step.session);
  if (step.verb === "removeWorker") return table.removeWorker(step.worker);
  if (step.verb === "removeRank") return table.removeRank({ workerId: step.worker, dpRank: step.rank });
  return table.record(step.tenant, step.session, { workerId: step.worker, dpRank: step.session.length % 2 }, nowMs);
}

// Pairs that a careless key would confuse, and texts of both sides of the longest.
const tenant = fc.constantFrom("", "a", "ab", "1", "x".repeat(256), "x".repeat(257));
const session = fc.constantFrom("", "b", "bc", "c", ":c", "1:b", "y".repeat(256), "y".repeat(257));
const worker = fc.nat(2);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant("record"), tenant, session, worker }) },
  { weight: 3, arbitrary: fc.record({ verb: fc.constant("find"), tenant, session }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("forget"), tenant, session }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("removeWorker"), worker }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("removeRank"), worker, rank: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ verb: fc.constant("advance"), ms: fc.integer({ min: -3, max: 8 }) }) },
);

describe("the session table beside the naive one", () => {
  test("answers the same under random calls, also where the clock goes back", () => {
    const sequences = fc.array(step, { maxLength: 80, size: "max" });
    fc.assert(fc.property(sequences, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 12 }), play), {
      numRuns: scaled(1_000),
    });
  });

  test("answers the same on all short sequences", () => {
    const alphabet: Step[] = [
      { verb: "record", tenant: "a", session: "b", worker: 0 },
      { verb: "record", tenant: "a", session: "b", worker: 1 },
      { verb: "record", tenant: "a", session: "c", worker: 0 },
      { verb: "find", tenant: "a", session: "b" },
      { verb: "forget", tenant: "a", session: "c" },
      { verb: "removeWorker", worker: 0 },
      { verb: "advance", ms: 2 },
      { verb: "advance", ms: -1 },
    ];
    const length = scaled(10) >= 10 ? 5 : 4;
    for (let number = 0; number < alphabet.length ** length; number++) {
      const steps = Array.from({ length }, (_, at) => alphabet[Math.floor(number / 8 ** at) % 8] as Step);
      play([...steps, { verb: "find", tenant: "a", session: "b" }, { verb: "find", tenant: "a", session: "c" }], 1, 3);
    }
  });
});
