import { describe, expect, test, vi } from "vitest";
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
