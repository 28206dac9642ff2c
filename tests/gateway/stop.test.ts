import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sharedSignal } from "../../src/gateway/shared-signal.js";
import { Stop, type StopSignal } from "../../src/gateway/stop.js";
import { abortSignalOf } from "../../src/gateway/upstream.js";
import { CountedSignal } from "../support/counted-signal.js";

describe("a stop signal", () => {
  test("does what an AbortSignal does", () => {
    const step = fc.record({ verb: fc.constantFrom("add", "remove", "abort"), who: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const stop = new Stop();
        const controller = new AbortController();
        const other = new AbortController();
        const signals: [StopSignal, (reason: unknown) => void][] = [
          [stop, (reason) => stop.abort(reason)],
          [controller.signal, (reason) => controller.abort(reason)],
          [sharedSignal(other.signal), (reason) => other.abort(reason)],
        ];
        const heard = signals.map(([signal, abort]) => {
          const log: string[] = [];
          const listeners = [0, 1, 2].map((who) => () => log.push(`${who}: ${signal.reason}`));
          for (const [at, { verb, who }] of steps.entries()) {
            const listener = listeners[who] as () => void;
            if (verb === "add") signal.addEventListener("abort", listener);
            else if (verb === "remove") signal.removeEventListener("abort", listener);
            else abort(`reason ${at}`);
            log.push(`${signal.aborted} ${signal.reason}`);
          }
          return log;
        });
        expect(heard[0]).toEqual(heard[1]);
        expect(heard[2]).toEqual(heard[1]);
      }),
    );
  });

  test("that is shared is listened to once, while anybody listens, and tells nobody whom another takes off", () => {
    const counted = new CountedSignal();
    const signal = sharedSignal(counted.signal);
    expect(sharedSignal(counted.signal)).toBe(signal);
    const told: string[] = [];
    const last = () => told.push("last");
    const first = () => {
      told.push("first");
      signal.removeEventListener("abort", last);
    };
    for (const listener of [first, last]) signal.addEventListener("abort", listener);
    expect(counted.listeners).toBe(1);
    for (const listener of [first, last]) signal.removeEventListener("abort", listener);
    expect(counted.listeners).toBe(0);
    for (const listener of [first, last]) signal.addEventListener("abort", listener);
    counted.controller.abort("enough");
    expect(told).toEqual(["first"]);
    expect(() => signal.throwIfAborted()).toThrow("enough");
  });

  test("throws its reason once it has stopped", () => {
    const stop = new Stop();
    stop.throwIfAborted();
    stop.abort("enough");
    expect(() => stop.throwIfAborted()).toThrow("enough");
  });

  test("is followed by an AbortSignal, before and behind its end; an AbortSignal is taken as it is", () => {
    const stop = new Stop();
    const early = abortSignalOf(stop);
    expect(early.aborted).toBe(false);
    stop.abort("enough");
    expect([early.aborted, early.reason]).toEqual([true, "enough"]);
    expect(abortSignalOf(stop).reason).toBe("enough");
    const { signal } = new AbortController();
    expect(abortSignalOf(signal)).toBe(signal);
  });
});
