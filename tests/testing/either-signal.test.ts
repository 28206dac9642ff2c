import { describe, expect, test, vi } from "vitest";
import { Closing } from "../../src/testing/closing.js";
import { EitherSignal } from "../../src/testing/either-signal.js";

describe("either of two signals", () => {
  test.each([0, 1])("aborts with number %i, and with its reason", (which) => {
    const controllers = [new AbortController(), new AbortController()] as const;
    const either = new EitherSignal(controllers[0].signal, controllers[1].signal);
    const listener = vi.fn();
    either.listen(listener);
    expect({ aborted: either.aborted, reason: either.reason }).toEqual({ aborted: false, reason: undefined });
    either.throwIfAborted();
    controllers[which]?.abort("enough");
    expect({ aborted: either.aborted, reason: either.reason }).toEqual({ aborted: true, reason: "enough" });
    expect(() => either.throwIfAborted()).toThrow("enough");
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test("tells nobody who has been taken off", () => {
    const controllers = [new AbortController(), new AbortController()] as const;
    const either = new EitherSignal(controllers[0].signal, controllers[1].signal);
    const listener = vi.fn();
    either.listen(listener);
    either.unlisten(listener);
    for (const controller of controllers) controller.abort();
    expect(listener).not.toHaveBeenCalled();
  });
});

describe("what closes an engine", () => {
  test("does what an AbortController does", () => {
    const told: string[] = [];
    const controller = new AbortController();
    for (const [name, signal, abort] of [
      ["own", new Closing(), undefined],
      ["web", controller.signal, (reason: unknown) => controller.abort(reason)],
    ] as const) {
      const tell = () => told.push(`${name} ${signal.aborted} ${String(signal.reason)}`);
      const never = () => told.push("never");
      const end = abort ?? ((reason: unknown) => (signal as Closing).abort(reason));
      signal.throwIfAborted();
      for (const listener of [tell, tell, never]) signal.addEventListener("abort", listener);
      signal.removeEventListener("abort", never);
      end("first");
      end("second");
      signal.addEventListener("abort", never);
      expect(() => signal.throwIfAborted()).toThrow("first");
    }
    expect(told).toEqual(["own true first", "web true first"]);
  });
});
