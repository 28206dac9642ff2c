import { describe, expect, test } from "vitest";
import { QueueError } from "../../src/errors.js";
import { AdmissionQueue, IDLE_PASSES_MAX } from "../../src/gateway/admission.js";
import { AdmissionRate, RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN } from "../../src/gateway/admission-rate.js";
import { QUEUED_MAX } from "../../src/gateway/options.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { CountedSignal } from "../support/counted-signal.js";

class Stage {
  readonly clock = new VirtualClock();
  readonly order: string[] = [];
  slots = 0;
  readonly queue: AdmissionQueue;

  constructor(options: { maxQueued?: number; queueTimeoutMs?: number } = {}) {
    this.queue = new AdmissionQueue({ clock: this.clock, maxQueued: 10, queueTimeoutMs: 1_000, ...options });
  }

  readonly attempt = (name: string) => (): string | undefined => {
    if (this.slots === 0) return undefined;
    this.slots--;
    this.order.push(name);
    return name;
  };

  enter(name: string, signal?: AbortSignal): string | Promise<string> {
    return this.queue.enter(this.attempt(name), signal);
  }

  free(): void {
    this.slots++;
    this.queue.wake();
  }
}

const failing = (run: () => unknown): unknown => {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("a request", () => {
  test("goes at once where a worker is free, without timer and listener", () => {
    const stage = new Stage();
    const counted = new CountedSignal();
    stage.slots = 1;
    expect(stage.enter("first", counted.signal)).toBe("first");
    expect([stage.clock.pending, counted.listeners]).toEqual([0, 0]);
  });

  test("gets what an attempt gives that is neither truthy nor undefined", async () => {
    const { queue } = new Stage();
    expect(queue.enter(() => null)).toBe(null);
    let given: number | undefined;
    const waiting = queue.enter(() => given);
    given = 0;
    queue.wake();
    expect(await waiting).toBe(0);
  });

  test("is refused where as many wait as may, and told when to come back", async () => {
    const stage = new Stage({ maxQueued: 1 });
    const waiting = stage.enter("first");
    const error = failing(() => stage.enter("second"));
    expect(error).toBeInstanceOf(QueueError);
    expect(error).toMatchObject({ code: "KVROUTE_GATEWAY_QUEUE_FULL", status: 429, retryAfterMs: RETRY_AFTER_MS_MAX });
    expect(stage.clock.pending).toBe(1);
    stage.free();
    expect(await waiting).toBe("first");
  });

  test("never waits where none may", () => {
    const stage = new Stage({ maxQueued: 0 });
    expect(failing(() => stage.enter("first"))).toMatchObject({ code: "KVROUTE_GATEWAY_QUEUE_FULL" });
    stage.slots = 1;
    expect(stage.enter("second")).toBe("second");
  });

  test("waits for as long as it may and no longer", async () => {
    const stage = new Stage({ queueTimeoutMs: 1_000 });
    const waiting = stage.enter("first") as Promise<string>;
    const ended = waiting.catch((error: unknown) => error);
    stage.clock.advance(999);
    expect(stage.queue.stats.waiting).toBe(1);
    stage.clock.advance(1);
    expect(stage.queue.stats).toMatchObject({ waiting: 0, timedOut: 1 });
    const expected = { code: "KVROUTE_GATEWAY_QUEUE_TIMEOUT", status: 429, retryAfterMs: RETRY_AFTER_MS_MAX };
    expect(await ended).toMatchObject(expected);
  });

  test("whose caller has gone before is not tried", () => {
    const stage = new Stage();
    stage.slots = 1;
    expect(failing(() => stage.enter("first", AbortSignal.abort("gone")))).toBe("gone");
    expect(stage.order).toEqual([]);
  });

  test("whose caller goes during a vain attempt does not wait", () => {
    const { queue, clock } = new Stage();
    const { controller, signal } = new CountedSignal();
    const attempt = () => controller.abort("gone") as undefined;
    expect(failing(() => queue.enter(attempt, signal))).toBe("gone");
    expect([queue.stats.cancelled, queue.stats.waiting, clock.pending]).toEqual([1, 0, 0]);
  });

  test("gets what its attempt took, although its caller went meanwhile: else nobody could give it back", async () => {
    const { queue, clock } = new Stage();
    const counted = new CountedSignal();
    let isFree = false;
    const waiting = queue.enter(() => {
      if (!isFree) return undefined;
      counted.controller.abort("gone");
      clock.advance(5_000);
      return "booked";
    }, counted.signal);
    isFree = true;
    queue.wake();
    expect(await waiting).toBe("booked");
    expect(queue.stats).toMatchObject({ admittedAfterWaiting: 1, cancelled: 0, timedOut: 0 });
    expect([clock.pending, counted.listeners]).toEqual([0, 0]);
  });

  test("leaves behind its attempt where that took nothing and the caller went meanwhile", async () => {
    const { queue, clock } = new Stage();
    const counted = new CountedSignal();
    let isTried = false;
    const waiting = queue.enter((): string | undefined => {
      if (isTried) counted.controller.abort("gone");
      isTried = true;
      return undefined;
    }, counted.signal) as Promise<string>;
    queue.wake();
    await expect(waiting).rejects.toBe("gone");
    expect([queue.stats.waiting, queue.stats.cancelled, clock.pending, counted.listeners]).toEqual([0, 1, 0, 0]);
  });
});

describe("the order", () => {
  test("of those who wait is that of their coming, and who was cancelled is not missed (scenario 10)", async () => {
    const stage = new Stage();
    const controllers = Array.from({ length: 5 }, () => new AbortController());
    const waiting = controllers.map(({ signal }, at) => stage.enter(`${at}`, signal) as Promise<string>);
    const ended = Promise.allSettled(waiting);
    for (const at of [0, 2, 3]) controllers[at]?.abort(`gone ${at}`);
    expect(stage.queue.stats).toMatchObject({ waiting: 2, cancelled: 3 });
    stage.free();
    stage.free();
    expect(stage.order).toEqual(["1", "4"]);
    const outcomes = (await ended).map((one) => (one.status === "fulfilled" ? one.value : one.reason));
    expect(outcomes).toEqual(["gone 0", "1", "gone 2", "gone 3", "4"]);
    expect([stage.clock.pending, stage.queue.stats.waiting, stage.slots]).toEqual([0, 0, 0]);
  });

  test("holds also where nobody said that a worker is free: a newcomer lets those go first", async () => {
    const stage = new Stage();
    const waiting = stage.enter("first");
    stage.slots = 1;
    const newcomer = stage.enter("second");
    stage.free();
    expect(await Promise.all([waiting, newcomer])).toEqual(["first", "second"]);
    expect(stage.order).toEqual(["first", "second"]);
  });

  test("lets a request pass one that waits for another worker, which keeps its place", async () => {
    const stage = new Stage();
    let isOther = false;
    const other = stage.queue.enter(() => (isOther ? "other" : undefined));
    for (let number = 0; number < 100; number++) {
      stage.slots = 1;
      expect(stage.enter(`${number}`)).toBe(`${number}`);
    }
    isOther = true;
    stage.queue.wake();
    expect(await other).toBe("other");
  });

  test("of a group is kept without asking those behind one that cannot go", async () => {
    const { queue } = new Stage({ maxQueued: 1_000 });
    let asked = 0;
    let slots = 0;
    const attempt = () => {
      asked++;
      return slots === 0 ? undefined : slots--;
    };
    const waiting = Array.from({ length: 1_000 }, () => queue.enter(attempt, undefined, "model"));
    expect(asked).toBe(1_000); // the first of them, for each that came
    asked = 0;
    slots = 3;
    queue.wake();
    expect(asked).toBe(4);
    expect(await Promise.all(waiting.slice(0, 3))).toEqual([3, 2, 1]);
    expect(queue.stats.waiting).toBe(997);
    queue.close(new Error("over"));
    await Promise.allSettled(waiting);
  });
});

describe("an attempt", () => {
  test("that throws ends its own request alone", async () => {
    const stage = new Stage();
    let isBroken = false;
    const broken = stage.queue.enter((): string | undefined => {
      if (isBroken) throw new Error("no such model");
      return undefined;
    }) as Promise<string>;
    const next = stage.enter("next");
    isBroken = true;
    stage.free();
    await expect(broken).rejects.toThrow("no such model");
    expect(await next).toBe("next");
    expect(stage.queue.stats).toMatchObject({ failed: 1, admittedAfterWaiting: 1 });
    expect(failing(() => stage.queue.enter(() => stage.attempt("x")() ?? raise()))).toEqual(new Error("raised"));
    expect([stage.queue.stats.failed, stage.clock.pending]).toEqual([2, 0]);
  });

  test("that frees a worker and wakes the queue lets those go that were asked in vain before", async () => {
    const stage = new Stage();
    const first = stage.enter("first");
    let isFreeing = false;
    const second = stage.queue.enter((): string | undefined => {
      if (!isFreeing) return undefined;
      isFreeing = false;
      stage.free();
      return undefined;
    });
    isFreeing = true;
    stage.queue.wake();
    expect(await first).toBe("first");
    expect(stage.queue.stats.waiting).toBe(1);
    stage.queue.close("over");
    await expect(second).rejects.toBe("over");
  });

  test("that makes one leave that was asked before keeps nobody behind it from being asked", async () => {
    const stage = new Stage();
    const { controller, signal } = new CountedSignal();
    const first = stage.queue.enter((): string | undefined => undefined, signal) as Promise<string>;
    let isTurn = false;
    const second = stage.queue.enter((): string | undefined => {
      if (isTurn) controller.abort("gone");
      return undefined;
    }) as Promise<string>;
    const third = stage.enter("third");
    isTurn = true;
    stage.slots = 1;
    stage.queue.wake();
    await expect(first).rejects.toBe("gone");
    expect(stage.order).toEqual(["third"]);
    expect(await third).toBe("third");
    stage.queue.close("over");
    await expect(second).rejects.toBe("over");
  });

  test("that settles at once wakes the queue hundreds of times without going deeper", async () => {
    const { queue } = new Stage({ maxQueued: 5_000 });
    let slots = 0;
    const attempt = () => {
      if (slots === 0) return undefined;
      slots--;
      slots++; // it has failed already
      queue.wake();
      return "failed";
    };
    const waiting = Array.from({ length: 5_000 }, () => queue.enter(attempt, undefined, "model"));
    slots = 1;
    queue.wake();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["failed"]));
  });

  test("that wakes the queue each time and never goes does not keep it awake", () => {
    const { queue } = new Stage();
    let asked = 0;
    const waiting = queue.enter((): string | undefined => {
      asked++;
      queue.wake();
      return undefined;
    }) as Promise<string>;
    expect(asked).toBe(1 + IDLE_PASSES_MAX); // when it came, and by the wake of its own
    queue.wake();
    expect(asked).toBe(1 + 2 * IDLE_PASSES_MAX);
    waiting.catch(() => {});
    queue.close("over");
  });

  test("that frees a worker although it cannot say so itself is asked once more", () => {
    const stage = new Stage();
    let asked = 0;
    const attempt = () => {
      if (asked++ === 0) stage.free();
      else return stage.attempt("first")();
      return undefined;
    };
    expect(stage.queue.enter(attempt)).toBe("first");
    expect([asked, stage.clock.pending]).toEqual([2, 0]);
  });

  test("that is made in vain is made once", () => {
    const { queue } = new Stage();
    let asked = 0;
    const waiting = queue.enter((): string | undefined => {
      asked++;
      return undefined;
    }) as Promise<string>;
    expect(asked).toBe(1);
    waiting.catch(() => {});
    queue.close("over");
  });

  test("before which nobody stands, and that enters another request, has it asked behind itself", async () => {
    const stage = new Stage();
    let inner: string | Promise<string> | undefined;
    const outer = stage.queue.enter(() => {
      inner = stage.enter("inner");
      stage.slots = 1;
      return "outer";
    });
    expect([outer, await inner]).toEqual(["outer", "inner"]);
    expect([stage.queue.stats.waiting, stage.clock.pending]).toEqual([0, 0]);
  });

  test("that enters another request has it asked in the same go", async () => {
    const stage = new Stage();
    let inner: string | Promise<string> | undefined;
    let isOpen = false;
    const outer = stage.queue.enter(() => {
      if (!isOpen) return undefined;
      inner = stage.enter("inner");
      return "outer";
    });
    isOpen = true;
    stage.slots = 1;
    stage.queue.wake();
    expect(await Promise.all([outer, inner])).toEqual(["outer", "inner"]);
    expect(stage.clock.pending).toBe(0);
  });
});

describe("closing", () => {
  test("turns all away that wait, and whoever comes later", async () => {
    const stage = new Stage();
    const counted = new CountedSignal();
    const waiting = [stage.enter("first", counted.signal), stage.enter("second")];
    const error = new Error("closed");
    stage.queue.close(error);
    stage.queue.close(new Error("again"));
    for (const { status, reason } of (await Promise.allSettled(waiting)) as PromiseRejectedResult[]) {
      expect([status, reason]).toEqual(["rejected", error]);
    }
    expect(failing(() => stage.enter("third"))).toBe(error);
    expect([stage.queue.stats.failed, stage.clock.pending, counted.listeners]).toEqual([2, 0, 0]);
  });

  test("by an attempt before which nobody stands ends that one too", () => {
    const { queue, clock } = new Stage();
    const attempt = () => queue.close("over") as undefined;
    expect(failing(() => queue.enter(attempt))).toBe("over");
    expect([queue.stats.waiting, queue.stats.failed, clock.pending]).toEqual([0, 1, 0]);
  });

  test("by an attempt ends that one behind it", async () => {
    const { queue } = new Stage();
    let isClosing = false;
    const waiting = queue.enter((): string | undefined => {
      if (isClosing) queue.close("over");
      return undefined;
    }) as Promise<string>;
    isClosing = true;
    queue.wake();
    expect(queue.stats).toMatchObject({ waiting: 0, failed: 1 });
    await expect(waiting).rejects.toBe("over");
  });
});

describe("the limits", () => {
  const clock = new VirtualClock();

  test.each([
    { maxQueued: -1 },
    { maxQueued: 1.5 },
    { maxQueued: QUEUED_MAX + 1 },
    { queueTimeoutMs: 0 },
    { queueTimeoutMs: 2 ** 31 },
    { queueTimeoutMs: Number.NaN },
  ])("%o is refused", (wrong) => {
    expect(() => new AdmissionQueue({ clock, maxQueued: 1, queueTimeoutMs: 1, ...wrong })).toThrow(/^Expected /);
  });

  test("are taken up to their ends", () => {
    for (const maxQueued of [0, QUEUED_MAX]) {
      for (const queueTimeoutMs of [1, 2 ** 31 - 1]) new AdmissionQueue({ clock, maxQueued, queueTimeoutMs });
    }
    expect(clock.pending).toBe(0);
  });
});

describe("the time after which to come back", () => {
  test("is what those who wait take at the rate of late", () => {
    const rate = new AdmissionRate();
    for (let ms = 0; ms < 30_000; ms += 100) rate.add(ms); // ten a second
    expect(rate.waitMs(100, 30_000)).toBeGreaterThan(9_000);
    expect(rate.waitMs(100, 30_000)).toBeLessThan(11_000);
  });

  test("is right soon after the first admission too", () => {
    const rate = new AdmissionRate();
    for (let ms = 0; ms < 1_000; ms += 100) rate.add(ms);
    expect(rate.waitMs(100, 1_000)).toBeGreaterThan(8_000);
    expect(rate.waitMs(100, 1_000)).toBeLessThan(12_000);
  });

  test("is bounded", () => {
    const rate = new AdmissionRate();
    expect(rate.waitMs(1, 0)).toBe(RETRY_AFTER_MS_MAX);
    rate.add(0);
    expect(rate.waitMs(1, 0)).toBe(RETRY_AFTER_MS_MIN);
    expect(rate.waitMs(1, 10_000_000)).toBe(RETRY_AFTER_MS_MAX);
  });

  test("is not spoilt by a clock that goes back", () => {
    const rate = new AdmissionRate();
    for (let ms = 0; ms < 30_000; ms += 100) rate.add(ms);
    const before = rate.waitMs(100, 30_000);
    expect(rate.waitMs(100, 10_000)).toBeLessThanOrEqual(before * 1.2);
  });
});

function raise(): never {
  throw new Error("raised");
}
