import { describe, expect, test } from "vitest";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { SESSIONS_MAX, SessionTable } from "../../src/selection/sessions.js";

const at = (workerId: string | number | bigint, dpRank = 0): WorkerWithDpRank => ({ workerId, dpRank });

describe("the session table", () => {
  test("keeps sessions of two tenants apart that go by the same id", () => {
    const table = new SessionTable();
    table.record("tenant a", "chat", at(1), 0);
    table.record("tenant b", "chat", at(2), 0);
    expect(table.find("tenant a", "chat", 1)).toEqual(at(1));
    expect(table.find("tenant b", "chat", 1)).toEqual(at(2));
    expect(table.find("", "chat", 1)).toBeUndefined();
    table.record("1", "2:x", at(3), 0);
    expect(table.find("12:", "x", 1)).toBeUndefined();
    expect(table.find("1:2", ":x", 1)).toBeUndefined();
  });

  test("follows a session to the worker that served it last", () => {
    const table = new SessionTable();
    table.record("t", "chat", at(1), 0);
    table.record("t", "chat", at(2, 3), 5);
    expect(table.find("t", "chat", 6)).toEqual(at(2, 3));
    expect(table.size).toBe(1);
  });

  test("keeps what it was told, whatever becomes of the object", () => {
    const table = new SessionTable();
    const worker = { workerId: 1, dpRank: 0 };
    table.record("t", "chat", worker, 0);
    worker.dpRank = 7;
    expect(table.find("t", "chat", 0)).toEqual(at(1));
  });

  test("never points to a worker that was removed, whichever way its number was written", () => {
    const table = new SessionTable();
    table.record("t", "a", at(1, 0), 0);
    table.record("t", "b", at(1n, 1), 0);
    table.record("t", "c", at("1"), 0);
    table.removeWorker(1n);
    expect(["a", "b", "c"].map((session) => table.find("t", session, 1))).toEqual([undefined, undefined, at("1")]);
    table.removeWorker(1);
    expect(table.stats).toEqual({ evicted: 0, expired: 0 });
  });

  test("knows a session up to its idle time and not after, and asking does not keep it", () => {
    const table = new SessionTable({ idleMs: 1_000 });
    table.record("t", "chat", at(1), 0);
    expect(table.find("t", "chat", 1_000)).toEqual(at(1));
    expect(table.find("t", "chat", 1_001)).toBeUndefined();
    expect([table.size, table.stats.expired]).toEqual([0, 1]);
  });

  test("knows a session for an hour when it is told nothing else", () => {
    const table = new SessionTable();
    table.record("t", "chat", at(1), 0);
    expect(table.find("t", "chat", 3_600_000)).toEqual(at(1));
    expect(table.find("t", "chat", 3_600_001)).toBeUndefined();
  });

  test("lets time stand still while the clock is set back", () => {
    const table = new SessionTable({ idleMs: 1_000 });
    table.record("t", "a", at(1), 5_000);
    table.record("t", "b", at(1), 3_000);
    expect(table.find("t", "b", 4_500)).toEqual(at(1));
    expect(table.find("t", "b", 6_001)).toBeUndefined();
    expect(table.size).toBe(0);
  });

  test("holds as many sessions as it may, and lets the one go that was used longest ago", () => {
    const table = new SessionTable({ maxSessions: 2 });
    table.record("t", "a", at(1), 0);
    table.record("t", "b", at(1), 1);
    table.record("t", "a", at(1), 2);
    expect([table.size, table.stats.evicted]).toEqual([2, 0]);
    table.record("t", "c", at(1), 3);
    expect([table.size, table.stats.evicted]).toEqual([2, 1]);
    expect(table.find("t", "b", 3)).toBeUndefined();
    expect(table.find("t", "a", 3)).toEqual(at(1));
  });

  test("does not grow with hundreds of thousands of sessions", () => {
    const table = new SessionTable({ maxSessions: 1_000 });
    for (let number = 0; number < 200_000; number++) table.record("t", `s${number}`, at(number % 7), number);
    expect([table.size, table.stats.evicted]).toEqual([1_000, 199_000]);
    for (let worker = 0; worker < 7; worker++) table.removeWorker(worker);
    expect(table.size).toBe(0);
  });

  test("passes over an id that is empty or longer than 256 characters, of a session as of a tenant", () => {
    const table = new SessionTable();
    const [longest, tooLong] = ["x".repeat(256), "x".repeat(257)] as const;
    expect(table.record("t", "", at(1), 0)).toBe(false);
    expect(table.record("t", tooLong, at(1), 0)).toBe(false);
    expect(table.record(tooLong, "chat", at(1), 0)).toBe(false);
    expect(table.size).toBe(0);
    expect(table.record("", longest, at(1), 0)).toBe(true);
    expect(table.record(longest, longest, at(1), 0)).toBe(true);
    expect(table.find(longest, longest, 0)).toEqual(at(1));
  });

  test("forgets a session when it is told to", () => {
    const table = new SessionTable();
    table.record("t", "chat", at(1), 0);
    expect(table.forget("t", "chat")).toBe(true);
    expect(table.forget("t", "chat")).toBe(false);
    expect(table.find("t", "chat", 0)).toBeUndefined();
  });

  test("refuses times and workers that are none, and changes nothing", () => {
    const table = new SessionTable({ idleMs: 10 });
    table.record("t", "chat", at(1), 0);
    expect(() => table.find("t", "chat", Number.NaN)).toThrow(
      expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }),
    );
    expect(() => table.record("t", "x", at(1.5), 99)).toThrow(
      expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }),
    );
    expect(() => table.record("t", "x", at(1, -1), 99)).toThrow(
      expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }),
    );
    expect(table.find("t", "chat", 0)).toEqual(at(1));
  });

  test("refuses options out of range", () => {
    for (const maxSessions of [0, 1.5, Number.NaN, SESSIONS_MAX + 1]) {
      expect(() => new SessionTable({ maxSessions })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected maxSessions to be a whole number from 1 to 16777215, got ${maxSessions}.`,
        }),
      );
    }
    for (const idleMs of [0, -1, Number.NaN]) {
      expect(() => new SessionTable({ idleMs })).toThrow(
        expect.objectContaining({ code: "KVROUTE_OPTION", message: `Expected idleMs to be above 0, got ${idleMs}.` }),
      );
    }
    expect(new SessionTable({ maxSessions: SESSIONS_MAX, idleMs: 0.5 }).size).toBe(0);
  });
});
