import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Budget } from "../../src/disagg/common/budget.js";
import { Deadline } from "../../src/disagg/common/deadline.js";
import { Mailbox } from "../../src/disagg/common/mailbox.js";
import { Remembered } from "../../src/disagg/common/remembered.js";
import { Sequencer } from "../../src/disagg/common/sequencer.js";
import { scaled } from "../support/scale.js";
import { VirtualClock } from "./router-clock.js";

/** All orders of the numbers below `count`. */
function orders(count: number): number[][] {
  if (count === 0) return [[]];
  return orders(count - 1).flatMap((order) =>
    Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]),
  );
}

describe("a sequencer", () => {
  test("hands on every order of six items in their own order, each as soon as it can", () => {
    for (const order of orders(6)) {
      const sequencer = new Sequencer<number>(6);
      const got: number[] = [];
      const seen = new Set<number>();
      for (const number of order) {
        seen.add(number);
        expect(sequencer.put(number, number, (item) => got.push(item))).toBe("taken");
        let ready = 0;
        while (seen.has(ready)) ready++;
        expect({ got, early: sequencer.early }).toEqual({
          got: Array.from({ length: ready }, (_, at) => at),
          early: seen.size - ready,
        });
      }
    }
  });

  test("agrees with a naive list on items that come twice, late, or too early", () => {
    const MAX_EARLY = 3;
    fc.assert(
      fc.property(fc.array(fc.nat(8), { maxLength: 30 }), (numbers) => {
        const sequencer = new Sequencer<number>(MAX_EARLY);
        const got: number[] = [];
        const seen = new Set<number>();
        let next = 0;
        for (const number of numbers) {
          const waiting = [...seen].filter((one) => one >= next).length;
          const isOverrun = !seen.has(number) && number > next && waiting >= MAX_EARLY;
          const expected = seen.has(number) ? "stale" : isOverrun ? "overrun" : "taken";
          expect(sequencer.put(number, number, (item) => got.push(item))).toBe(expected);
          if (expected === "taken") seen.add(number);
          while (seen.has(next)) next++;
          expect(got).toEqual(Array.from({ length: next }, (_, at) => at));
        }
      }),
      { numRuns: scaled(1_000) },
    );
  });
});

describe("a deadline", () => {
  type Step = ["set" | "pass", number] | ["rest" | "clear", 0];
  const steps: fc.Arbitrary<Step> = fc.oneof(
    fc.tuple(fc.constantFrom("set" as const, "pass" as const), fc.integer({ min: 0, max: 30 })),
    fc.tuple(fc.constantFrom("rest" as const, "clear" as const), fc.constant(0 as const)),
  );

  test("passes once, at the moment that was set last, and not before", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 12 }), async (plan) => {
        const clock = new VirtualClock();
        const passed: number[] = [];
        const deadline = new Deadline(clock, () => passed.push(clock.now()));
        const expected: number[] = [];
        let atMs = Number.POSITIVE_INFINITY;
        for (const [verb, amount] of plan) {
          if (verb === "set") {
            atMs = clock.now() + amount;
            deadline.set(atMs);
          } else if (verb === "pass") {
            await clock.pass(amount);
            if (atMs <= clock.now()) {
              expected.push(atMs);
              atMs = Number.POSITIVE_INFINITY;
            }
          } else {
            deadline[verb]();
            atMs = Number.POSITIVE_INFINITY;
          }
          expect(passed).toEqual(expected);
          expect(clock.timers).toBeLessThanOrEqual(1);
        }
        deadline.clear();
        expect(clock.timers).toBe(0);
      }),
      { numRuns: scaled(300) },
    );
  });
});

describe("a mailbox", () => {
  const TTL_MS = 20;
  const MOST = 3;
  type Step = ["add" | "renew" | "take", string] | ["pass", number];
  const steps: fc.Arbitrary<Step> = fc.oneof(
    fc.tuple(fc.constantFrom("add" as const, "renew" as const, "take" as const), fc.constantFrom("a", "b", "c", "d")),
    fc.tuple(fc.constant("pass" as const), fc.integer({ min: 0, max: 25 })),
  );

  test("agrees with a naive one: what it keeps, refuses and lets expire, and when", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 20 }), async (plan) => {
        const clock = new VirtualClock();
        const expired: string[] = [];
        const mailbox = new Mailbox<number>(clock, MOST, TTL_MS, (key, item) => expired.push(`${key}${item}`));
        const kept = new Map<string, { item: number; untilMs: number }>();
        const gone: string[] = [];
        for (const [index, [verb, argument]] of plan.entries()) {
          const untilMs = clock.now() + TTL_MS;
          if (verb === "pass") {
            await clock.pass(argument);
            const late = [...kept]
              .filter(([, one]) => one.untilMs <= clock.now())
              .sort(([, a], [, b]) => a.untilMs - b.untilMs);
            for (const [key, { item }] of late) {
              kept.delete(key);
              gone.push(`${key}${item}`);
            }
          } else if (verb === "add") {
            if (kept.has(argument)) continue; // the caller's to avoid
            expect(mailbox.add(argument, index)).toBe(kept.size < MOST);
            if (kept.size < MOST) kept.set(argument, { item: index, untilMs });
          } else if (verb === "renew") {
            mailbox.renew(argument);
            const one = kept.get(argument);
            kept.delete(argument);
            if (one !== undefined) kept.set(argument, { ...one, untilMs });
          } else {
            expect(mailbox.take(argument)).toBe(kept.get(argument)?.item);
            kept.delete(argument);
          }
          expect({ size: mailbox.size, expired }).toEqual({ size: kept.size, expired: gone });
          for (const key of ["a", "b", "c", "d"]) expect(mailbox.get(key)).toBe(kept.get(key)?.item);
        }
        await clock.pass(TTL_MS);
        expect({ size: mailbox.size, timers: clock.timers }).toEqual({ size: 0, timers: 0 });
      }),
      { numRuns: scaled(500) },
    );
  });
});

test("a memory of keys keeps the last so many, in the order in which they were put in last", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("1:a", "1:b", "2:a", "2:b"), { maxLength: 12 }), (keys) => {
      const memory = new Remembered(2);
      let naive: string[] = [];
      for (const key of keys) {
        memory.add(key, key.endsWith("a"));
        naive = [...naive.filter((other) => other !== key), key].slice(-2);
        for (const other of ["1:a", "1:b", "2:a", "2:b"]) expect(memory.has(other)).toBe(naive.includes(other));
        expect(memory.isKnown(key)).toBe(key.endsWith("a"));
      }
      memory.forget((key) => key.startsWith("1:"));
      for (const other of ["1:a", "2:a", "2:b"]) {
        expect(memory.has(other)).toBe(naive.includes(other) && !other.startsWith("1:"));
      }
    }),
  );
});

test("a budget lends what there is, whole or not at all", () => {
  const budget = new Budget(10);
  expect([budget.take(4), budget.take(7), budget.take(6), budget.take(1), budget.lent]).toEqual([
    true,
    false,
    true,
    false,
    10,
  ]);
  budget.give(6);
  expect([budget.take(7), budget.take(6), budget.lent]).toEqual([false, true, 10]);
});
