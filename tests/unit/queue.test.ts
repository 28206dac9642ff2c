import { describe, expect, test } from "vitest";
import { HELD_MAX, HoldQueue } from "../../src/selection/queue.js";

interface Prompt {
  readonly name: string;
  readonly tokens: number | undefined;
}

const prompt = (name: string, tokens?: number): Prompt => ({ name, tokens });
const tokensOf = ({ tokens }: Prompt): number | undefined => tokens;

/** Takes all that can be handed over at a time, at a token a millisecond. */
const drain = (queue: HoldQueue<Prompt>, nowMs: number, tokensPerMs = 1): string[] => {
  const names: string[] = [];
  for (;;) {
    const next = queue.take(nowMs, tokensPerMs, tokensOf);
    if (next === undefined) return names;
    names.push(next.name);
  }
};

describe("the queue of held requests", () => {
  test("hands over first what has least to compute, and of equals what came first", () => {
    const queue = new HoldQueue<Prompt>();
    for (const [name, tokens] of [
      ["a", 30],
      ["b", 10],
      ["c", 20],
      ["d", 10],
    ] as const)
      queue.hold(prompt(name, tokens), 0);
    expect(drain(queue, 0)).toEqual(["b", "d", "c", "a"]);
    expect(queue.size).toBe(0);
  });

  test("takes 0.3 of what a worker could have done meanwhile off what has waited", () => {
    const order = (gapMs: number): string[] => {
      const queue = new HoldQueue<Prompt>();
      queue.hold(prompt("long", 1_000), 0);
      queue.hold(prompt("short", 400), gapMs);
      return drain(queue, 5_000);
    };
    expect(order(1_999)).toEqual(["short", "long"]); // has gained 599.7 tokens
    expect(order(2_000)).toEqual(["long", "short"]); // 600: equal, and it came first
  });

  test("ages by what it is told, and by the speed of the worker", () => {
    const order = (ageing: number, tokensPerMs: number): string[] => {
      const queue = new HoldQueue<Prompt>({ ageing });
      queue.hold(prompt("long", 1_000), 0);
      queue.hold(prompt("short", 400), 1_000);
      return drain(queue, 5_000, tokensPerMs);
    };
    expect(order(1, 0.6)[0]).toBe("long");
    expect(order(1, 0.59)[0]).toBe("short");
    expect(order(0.3, 2)[0]).toBe("long");
    expect(order(0, 1_000)[0]).toBe("short");
    expect(order(1, 0)[0]).toBe("short");
  });

  test("with full ageing lets no prompt wait for ever behind shorter ones", () => {
    const queue = new HoldQueue<Prompt>({ ageing: 1 });
    queue.hold(prompt("long", 1_000), 0);
    let nowMs = 0;
    for (;;) {
      queue.hold(prompt("short", 10), nowMs);
      if (queue.take(nowMs, 1, tokensOf)?.name === "long") break;
      nowMs += 10;
    }
    expect(nowMs).toBe(990);
  });

  test("passes over what no worker may have now, and keeps it", () => {
    const queue = new HoldQueue<Prompt>();
    queue.hold(prompt("waits"), 0);
    queue.hold(prompt("goes", 99), 0);
    expect(drain(queue, 0)).toEqual(["goes"]);
    expect(queue.size).toBe(1);
  });

  test("lets a cancelled request go at once, wherever it stands, and the others run in order", () => {
    const queue = new HoldQueue<Prompt>();
    const held = ["a", "b", "c", "d", "e"].map((name) => queue.hold(prompt(name, 10), 0));
    for (const at of [0, 2, 3]) expect(queue.cancel(held[at] as (typeof held)[number])).toBe(true);
    expect(queue.size).toBe(2);
    expect(queue.cancel(held[0] as (typeof held)[number])).toBe(false);
    expect(drain(queue, 0)).toEqual(["b", "e"]);
    expect(queue.cancel(held[1] as (typeof held)[number])).toBe(false);
  });

  test("holds as many as it may, refuses one more and changes nothing", () => {
    const queue = new HoldQueue<Prompt>({ maxHeld: 2 });
    const first = queue.hold(prompt("a", 1), 0);
    queue.hold(prompt("b", 2), 0);
    expect(() => queue.hold(prompt("c", 0), 9_000)).toThrow(
      expect.objectContaining({
        code: "KVROUTE_QUEUE_FULL",
        status: 429,
        message: "Expected at most 2 held requests (maxHeld), got one more.",
      }),
    );
    expect(queue.hold.bind(queue, prompt("c", 0), 0)).toThrow();
    queue.cancel(first);
    queue.hold(prompt("d", 0), 0);
    expect(drain(queue, 0)).toEqual(["d", "b"]);
  });

  test("holds 1,024 when it is told nothing", () => {
    const queue = new HoldQueue<Prompt>();
    for (let number = 0; number < 1_024; number++) queue.hold(prompt(`${number}`, 1), 0);
    expect(() => queue.hold(prompt("more", 1), 0)).toThrow("Expected at most 1024 held requests");
  });

  test("tells what has waited for too long, the first that came first", () => {
    const queue = new HoldQueue<Prompt>({ maxWaitMs: 100 });
    queue.hold(prompt("a"), 0);
    queue.hold(prompt("b"), 50);
    expect(queue.takeOverdue(100)).toBeUndefined();
    expect(queue.takeOverdue(151)?.name).toBe("a");
    expect(queue.takeOverdue(151)?.name).toBe("b");
    expect(queue.takeOverdue(151)).toBeUndefined();
    const patient = new HoldQueue<Prompt>();
    patient.hold(prompt("a"), 0);
    expect(patient.takeOverdue(60_000)).toBeUndefined();
    expect(patient.takeOverdue(60_001)?.name).toBe("a");
  });

  test("lets time stand still while the clock is set back", () => {
    const queue = new HoldQueue<Prompt>({ maxWaitMs: 100 });
    queue.hold(prompt("a", 10), 1_000);
    expect(queue.hold(prompt("b", 10), 500).sinceMs).toBe(1_000);
    expect(queue.takeOverdue(700)).toBeUndefined();
    expect(drain(queue, 0)).toEqual(["a", "b"]);
  });

  test("is driven by promises as well as by a loop: who gives up leaves, who is served goes on", async () => {
    interface Waiting {
      readonly tokens: number;
      readonly go: () => void;
    }
    const queue = new HoldQueue<Waiting>();
    const served: number[] = [];
    const enter = (tokens: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        const held = queue.hold({ tokens, go: resolve }, 0);
        signal?.addEventListener("abort", () => {
          if (queue.cancel(held)) reject(signal.reason);
        });
      });
    const patience = new AbortController();
    const given = enter(1, patience.signal);
    const others = [30, 20].map((tokens) => enter(tokens).then(() => served.push(tokens)));
    patience.abort(new Error("gone"));
    await expect(given).rejects.toThrow("gone");
    expect(queue.size).toBe(2);
    const freed = (): void => queue.take(0, 1, ({ tokens }) => tokens)?.go();
    freed();
    freed();
    await Promise.all(others);
    expect(served).toEqual([20, 30]);
  });

  test("refuses times and options out of range, and changes nothing", () => {
    const queue = new HoldQueue<Prompt>();
    for (const call of [
      () => queue.hold(prompt("a", 1), Number.NaN),
      () => queue.take(Number.POSITIVE_INFINITY, 1, tokensOf),
      () => queue.takeOverdue(Number.NaN),
    ]) {
      expect(call).toThrow(expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }));
    }
    expect(queue.size).toBe(0);
    for (const maxHeld of [0, 1.5, HELD_MAX + 1]) {
      expect(() => new HoldQueue({ maxHeld })).toThrow(
        `Expected maxHeld to be a whole number from 1 to 1000000, got ${maxHeld}.`,
      );
    }
    for (const ageing of [-0.1, 1_000_001, Number.NaN]) {
      expect(() => new HoldQueue({ ageing })).toThrow(
        `Expected ageing to be a number from 0 to 1000000, got ${ageing}.`,
      );
    }
    for (const maxWaitMs of [0, -1, Number.NaN]) {
      expect(() => new HoldQueue({ maxWaitMs })).toThrow(`Expected maxWaitMs to be above 0, got ${maxWaitMs}.`);
    }
    expect(new HoldQueue({ maxHeld: HELD_MAX, ageing: 1_000_000, maxWaitMs: 0.5 }).size).toBe(0);
  });
});
