import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../src/sim/clock.js";
import { scaled } from "../support/scale.js";

describe("a virtual clock", () => {
  test("goes from timer to timer, those of one moment in the order in which they were set", () => {
    const clock = new VirtualClock({ startMs: 100 });
    const log: string[] = [];
    for (const [name, delay] of [
      ["late", 5],
      ["first", 1],
      ["second", 1],
      ["past", -3],
    ] as const) {
      clock.setTimeout(() => log.push(`${name} ${clock.now()}`), delay);
    }
    expect(clock.nextMs).toBe(100);
    clock.advance(3);
    expect([log, clock.now(), clock.pending]).toEqual([["past 100", "first 101", "second 101"], 103, 1]);
    clock.runAll();
    expect([log.at(-1), clock.now(), clock.nextMs, clock.step()]).toEqual(["late 105", 105, null, false]);
  });

  test("lets timers happen that timers set, up to the end of the time that passes", () => {
    const clock = new VirtualClock();
    const log: number[] = [];
    const again = () => {
      log.push(clock.now());
      clock.setTimeout(again, 10);
    };
    clock.setTimeout(again, 0);
    clock.advance(30);
    expect([log, clock.now()]).toEqual([[0, 10, 20, 30], 30]);
  });

  test("stops where timers come without end", () => {
    const clock = new VirtualClock();
    let count = 0;
    const again = () => {
      count++;
      clock.setTimeout(again, 0);
    };
    again();
    expect(() => clock.runAll(10)).toThrow("Expected at most 10 timers to fall due, got one more.");
    expect([count, clock.pending]).toEqual([11, 1]);
    expect(() => clock.advance(0, 5)).toThrow("Expected at most 5 timers");
  });

  test("holds timersMax timers, and none without a moment", () => {
    const clock = new VirtualClock({ timersMax: 2 });
    const set = (delayMs = 1) => clock.setTimeout(() => undefined, delayMs);
    expect(() => set(Number.NaN)).toThrow("Expected a delay that is a finite number of milliseconds, got NaN.");
    const handles = [set(), set()];
    expect(() => set()).toThrow("Expected at most 2 timers at a time, got one more.");
    clock.clearTimeout(handles[0]);
    set();
    expect(clock.pending).toBe(2);
  });

  test("does what a sorted list does", () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ set: fc.integer({ min: -2, max: 20 }) }) },
      { weight: 4, arbitrary: fc.record({ clear: fc.nat(200) }) },
      { weight: 1, arbitrary: fc.record({ pass: fc.nat(8) }) },
    );
    const property = fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const clock = new VirtualClock();
      const handles: unknown[] = [];
      const fired: number[] = [];
      let naive: { id: number; atMs: number }[] = [];
      const expected: number[] = [];
      let nowMs = 0;
      for (const one of steps) {
        if ("set" in one) {
          const id = handles.length;
          handles.push(clock.setTimeout(() => fired.push(id), one.set));
          naive.push({ id, atMs: nowMs + Math.max(0, one.set) });
        } else if ("clear" in one) {
          const id = one.clear % Math.max(1, handles.length);
          clock.clearTimeout(handles[id]);
          naive = naive.filter((timer) => timer.id !== id);
        } else {
          clock.advance(one.pass);
          nowMs += one.pass;
          const due = naive.filter(({ atMs }) => atMs <= nowMs).sort((a, b) => a.atMs - b.atMs || a.id - b.id);
          expected.push(...due.map(({ id }) => id));
          naive = naive.filter(({ atMs }) => atMs > nowMs);
        }
        expect([fired, clock.now(), clock.pending]).toEqual([expected, nowMs, naive.length]);
        expect(clock.nextMs).toBe(naive.length === 0 ? null : Math.min(...naive.map(({ atMs }) => atMs)));
      }
    });
    fc.assert(property, { numRuns: scaled(100) });
  });
});
