import { describe, expect, test } from "vitest";
import { type Policy, sessionPin } from "../../src/selection/policy.js";
import { candidate, chosen, fleet, noChance, prompt, seeded } from "./policy-stage.js";

const turn = (session: string) => prompt(4, { session });

/** Who serves the session while worker 0 is the least loaded one by far, unless it is pinned elsewhere. */
const serve = (policy: Policy, session: string, ids: readonly number[], nowMs = 0): unknown => {
  const workers = ids.map((id) => candidate({ id, activePrefillTokens: 1_000 * id }));
  return chosen(policy, workers, turn(session), { ...noChance, nowMs }).workerId;
};

describe("session-pin", () => {
  test("starts a session on the least loaded worker and keeps it there, whatever the load", () => {
    const policy = sessionPin();
    expect(serve(policy, "chat", [2, 1, 3])).toBe(1);
    expect(serve(policy, "chat", [0, 1, 2, 3])).toBe(1);
    expect(serve(policy, "other", [0, 1, 2, 3])).toBe(0);
  });

  test("moves a session for good when its worker is not among the candidates", () => {
    const policy = sessionPin();
    expect(serve(policy, "chat", [1, 2])).toBe(1);
    expect(serve(policy, "chat", [2, 3])).toBe(2);
    expect(serve(policy, "chat", [0, 1, 2])).toBe(2);
  });

  test("does not send a session back to a worker that was removed and has returned", () => {
    const policy = sessionPin();
    serve(policy, "chat", [1, 2]);
    policy.removeWorker?.(1n);
    expect(serve(policy, "chat", [0, 1, 2])).toBe(0);
  });

  test("pins to the rank, not only to the worker", () => {
    const policy = sessionPin();
    const ranks = [0, 1].map((dpRank) => candidate({ id: 7, dpRank, activePrefillTokens: 9 - dpRank }));
    expect(chosen(policy, ranks, turn("chat"))).toEqual({ workerId: 7, dpRank: 1 });
    const swapped = [0, 1].map((dpRank) => candidate({ id: 7, dpRank, activePrefillTokens: dpRank }));
    expect(chosen(policy, swapped, turn("chat"))).toEqual({ workerId: 7, dpRank: 1 });
    expect(chosen(policy, swapped.slice(0, 1), turn("chat"))).toEqual({ workerId: 7, dpRank: 0 });
  });

  test("forgets a session that is idle for longer than its time, and each use begins it anew", () => {
    const policy = sessionPin({ idleMs: 1_000 });
    serve(policy, "chat", [1], 0);
    expect(serve(policy, "chat", [0, 1], 1_000)).toBe(1);
    expect(serve(policy, "chat", [0, 1], 2_000)).toBe(1);
    expect(serve(policy, "chat", [0, 1], 3_001)).toBe(0);
  });

  test("keeps as many sessions as it may", () => {
    const policy = sessionPin({ maxSessions: 2 });
    for (const session of ["a", "b", "c"]) serve(policy, session, [1]);
    expect(["b", "c", "a"].map((session) => serve(policy, session, [0, 1]))).toEqual([1, 1, 0]);
    expect(() => sessionPin({ maxSessions: 0 })).toThrow("Expected maxSessions to be");
  });

  test("sends a request without a session, or with one that is no name, to the least loaded worker each time", () => {
    const policy = sessionPin();
    for (const session of ["", "x".repeat(257)]) {
      expect(serve(policy, session, [1])).toBe(1);
      expect(serve(policy, session, [0, 1])).toBe(0);
    }
    const workers = [candidate({ id: 0, activePrefillTokens: 1 }), candidate({ id: 1 })];
    expect(chosen(policy, workers, prompt(4)).workerId).toBe(1);
  });

  test("explains who was pinned", () => {
    const policy = sessionPin();
    serve(policy, "chat", [1]);
    const { terms } = policy.choose(fleet(3), turn("chat"), seeded(1, { explain: true }));
    expect(terms?.map((one) => one["pinned"])).toEqual([0, 1, 0]);
  });
});
