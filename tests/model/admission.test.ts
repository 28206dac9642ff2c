import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KvrouteError } from "../../src/errors.js";
import { AdmissionQueue } from "../../src/gateway/admission.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { CountedSignal } from "../support/counted-signal.js";
import { scaled } from "../support/scale.js";
import { type Fate, type Model, NaiveAdmission, type Settings, type Step } from "./admission-naive.js";

const FATES: Record<string, Fate> = {
  KVROUTE_GATEWAY_QUEUE_FULL: "full",
  KVROUTE_GATEWAY_QUEUE_TIMEOUT: "late",
};

/** The queue, and workers of two models as so many slots. */
class Stage {
  readonly clock = new VirtualClock();
  readonly queue: AdmissionQueue;
  readonly slots: Record<Model, number>;
  readonly busy: Record<Model, number> = { a: 0, b: 0 };
  readonly fates: Fate[] = [];
  readonly order: number[] = [];
  readonly signals: (CountedSignal | undefined)[] = [];
  readonly spoilt = new Set<number>();
  #resting: { readonly model: Model; readonly atMs: number }[] = [];

  constructor(readonly settings: Settings) {
    const nextFreeMs = () => Math.min(...this.#stillResting().map(({ atMs }) => atMs));
    this.queue = new AdmissionQueue({ clock: this.clock, ...settings, nextFreeMs });
    this.slots = { a: settings.slots, b: settings.slots };
  }

  step(step: Step): void {
    if (step.verb === "enter") this.#enter(step.model, step.hasSignal);
    if (step.verb === "free" && this.busy[step.model] > 0) {
      this.busy[step.model]--;
      this.slots[step.model]++;
      if (step.isTold) this.queue.wake();
    }
    if (step.verb === "abort") this.signals[step.which]?.controller.abort("gone");
    if (step.verb === "spoil" && step.which < this.fates.length) this.spoilt.add(step.which);
    if (step.verb === "advance") this.clock.advance(step.ms);
    if (step.verb === "rest") this.#resting.push({ model: step.model, atMs: this.clock.now() + step.ms });
    if (step.verb === "rest" || step.verb === "wake") this.queue.wake();
    if (step.verb === "close") this.queue.close("closed");
  }

  /** Gives back what has rested long enough, and lists the others. */
  #stillResting(): readonly { readonly atMs: number }[] {
    for (const { model, atMs } of this.#resting) if (atMs <= this.clock.now()) this.slots[model]++;
    this.#resting = this.#resting.filter(({ atMs }) => atMs > this.clock.now());
    return this.#resting;
  }

  #enter(model: Model, hasSignal: boolean): void {
    const number = this.fates.length;
    const counted = hasSignal ? new CountedSignal() : undefined;
    this.signals.push(counted);
    this.fates.push("waiting");
    const attempt = () => {
      this.#stillResting();
      if (this.spoilt.has(number)) throw "spoilt";
      if (this.slots[model] === 0) return undefined;
      this.slots[model]--;
      this.busy[model]++;
      this.order.push(number);
      return number;
    };
    try {
      const entered = this.queue.enter(attempt, counted?.signal, this.settings.isGrouped ? model : undefined);
      if (typeof entered === "number") this.#gone(number, entered);
      else
        entered.then(
          (given) => this.#gone(number, given),
          (error) => this.#failed(number, error),
        );
    } catch (error) {
      this.#failed(number, error);
    }
  }

  #gone(number: number, given: number): void {
    this.fates[number] = given === number ? "gone" : "closed";
  }

  #failed(number: number, error: unknown): void {
    if (error instanceof KvrouteError) this.fates[number] = FATES[error.code] as Fate;
    else this.fates[number] = error === "gone" ? "aborted" : (error as Fate);
  }
}

/** Plays steps on the queue and on the naive one and compares all that either says. */
async function play(steps: readonly Step[], settings: Settings): Promise<void> {
  const stage = new Stage(settings);
  const naive = new NaiveAdmission(settings);
  let latecomers = 0; // who comes to a closed queue is not counted
  for (const step of steps) {
    if (step.verb === "enter" && naive.isClosed) latecomers++;
    stage.step(step);
    naive.step(step);
    const { waiting } = naive;
    const listening = waiting.filter(({ hasSignal }) => hasSignal).length;
    const said = {
      stats: stage.queue.stats,
      order: stage.order,
      timers: stage.clock.pending,
      listeners: stage.signals.reduce((sum, counted) => sum + (counted?.listeners ?? 0), 0),
    };
    expect(said).toEqual({
      stats: {
        waiting: waiting.length,
        admittedAtOnce: naive.count("gone", false),
        admittedAfterWaiting: naive.count("gone", true),
        refused: naive.count("full"),
        timedOut: naive.count("late"),
        cancelled: naive.count("aborted"),
        failed: naive.count("spoilt") + naive.count("closed") - latecomers,
      },
      order: naive.order,
      timers: waiting.length + Number(waiting.length > 0 && naive.resting.length > 0),
      listeners: listening,
    });
  }
  for (let turns = 0; turns < 3; turns++) await Promise.resolve();
  expect(stage.fates).toEqual(naive.requests.map(({ fate }) => fate));
}

/** Plays all sequences of so many steps. */
async function playAll(alphabet: readonly Step[], length: number): Promise<void> {
  const size = alphabet.length;
  for (const isGrouped of [true, false]) {
    for (let number = 0; number < size ** length; number++) {
      const steps = Array.from({ length }, (_, at) => alphabet[Math.floor(number / size ** at) % size] as Step);
      await play(steps, { maxQueued: 2, queueTimeoutMs: 3, slots: 1, isGrouped });
    }
  }
}

const model = fc.constantFrom<Model>("a", "b");
const which = fc.nat(9);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: fc.record({ verb: fc.constant("enter"), model, hasSignal: fc.boolean() }) },
  { weight: 30, arbitrary: fc.record({ verb: fc.constant("free"), model, isTold: fc.boolean() }) },
  { weight: 15, arbitrary: fc.record({ verb: fc.constant("abort"), which }) },
  { weight: 5, arbitrary: fc.record({ verb: fc.constant("spoil"), which }) },
  { weight: 15, arbitrary: fc.record({ verb: fc.constant("advance"), ms: fc.nat(5) }) },
  { weight: 10, arbitrary: fc.record({ verb: fc.constant("wake") }) },
  // By halves, so that no rest ends in the moment in which somebody has waited long enough.
  { weight: 10, arbitrary: fc.record({ verb: fc.constant("rest"), model, ms: fc.nat(6).map((ms) => ms + 0.5) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("close") }) },
);

describe("the admission queue beside the naive one", () => {
  test("does the same under random calls, in the same order, and leaves no timer and no listener", async () => {
    const settings = fc.record({
      maxQueued: fc.nat(6),
      queueTimeoutMs: fc.integer({ min: 1, max: 12 }),
      slots: fc.nat(2),
      isGrouped: fc.boolean(),
    });
    const steps = fc.array(step, { maxLength: 60, size: "max" });
    await fc.assert(fc.asyncProperty(steps, settings, play), { numRuns: scaled(1_500) });
  });

  test("does the same on all short sequences", async () => {
    const alphabet: Step[] = [
      { verb: "enter", model: "a", hasSignal: true },
      { verb: "enter", model: "b", hasSignal: false },
      { verb: "free", model: "a", isTold: true },
      { verb: "free", model: "a", isTold: false },
      { verb: "abort", which: 1 },
      { verb: "spoil", which: 1 },
      { verb: "advance", ms: 2 },
      { verb: "close" },
    ];
    const length = scaled(10) >= 10 ? 5 : 4;
    await playAll(alphabet, length);
    await playAll([...alphabet, { verb: "rest", model: "a", ms: 1.5 }], length - 1);
  });
});
