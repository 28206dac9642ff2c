import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Held, HoldQueue } from "../../src/selection/queue.js";
import { scaled } from "../support/scale.js";

type Step =
  | { readonly verb: "hold"; readonly tokens: number }
  | { readonly verb: "cancel"; readonly which: number }
  | { readonly verb: "take"; readonly tokensPerMs: number; readonly most: number }
  | { readonly verb: "takeOverdue" }
  | { readonly verb: "advance"; readonly ms: number };

interface Settings {
  readonly maxHeld: number;
  readonly ageing: number;
  readonly maxWaitMs: number;
}

interface Request {
  readonly number: number;
  readonly tokens: number;
  readonly sinceMs: number;
}

/** The queue as a list that is filtered and sorted for every question. */
class NaiveQueue {
  list: Request[] = [];
  #came = 0;

  constructor(readonly settings: Settings) {}

  hold(tokens: number, nowMs: number): Request | "full" {
    const request = { number: this.#came, tokens, sinceMs: nowMs };
    if (this.list.length === this.settings.maxHeld) return "full";
    this.#came++;
    this.list.push(request);
    return request;
  }

  cancel(number: number): boolean {
    return this.#without(this.list.find((one) => one.number === number)) !== undefined;
  }

  take(nowMs: number, tokensPerMs: number, most: number): Request | undefined {
    const left = (one: Request): number => one.tokens - this.settings.ageing * tokensPerMs * (nowMs - one.sinceMs);
    const able = this.list.filter((one) => one.tokens <= most);
    return this.#without(able.sort((a, b) => left(a) - left(b) || a.number - b.number)[0]);
  }

  takeOverdue(nowMs: number): Request | undefined {
    return this.#without(this.list.filter((one) => nowMs - one.sinceMs > this.settings.maxWaitMs)[0]);
  }

  #without(request: Request | undefined): Request | undefined {
    this.list = this.list.filter((one) => one !== request);
    return request;
  }
}

/** Plays steps on the queue and on the naive one and compares all that either says. */
function play(steps: readonly Step[], settings: Settings): void {
  const queue = new HoldQueue<Request>(settings);
  const naive = new NaiveQueue(settings);
  const held: Held<Request>[] = [];
  let clockMs = 0;
  let nowMs = Number.NEGATIVE_INFINITY; // the latest that the queue was told, and did not refuse
  for (const step of steps) {
    if (step.verb === "advance") {
      clockMs += step.ms;
      continue;
    }
    if (step.verb === "cancel") {
      const one = held[step.which];
      if (one !== undefined) expect(queue.cancel(one)).toBe(naive.cancel(one.item.number));
    } else {
      const isRefused = step.verb === "hold" && naive.list.length === settings.maxHeld;
      if (!isRefused) nowMs = Math.max(nowMs, clockMs);
      ask(step);
    }
    if (queue.size !== naive.list.length) expect(queue.size).toBe(naive.list.length);
  }

  function ask(step: Exclude<Step, { verb: "advance" | "cancel" }>): void {
    if (step.verb === "takeOverdue") {
      expect(queue.takeOverdue(clockMs)).toBe(naive.takeOverdue(nowMs));
    } else if (step.verb === "take") {
      const tokensOf = ({ tokens }: Request): number | undefined => (tokens <= step.most ? tokens : undefined);
      expect(queue.take(clockMs, step.tokensPerMs, tokensOf)).toBe(naive.take(nowMs, step.tokensPerMs, step.most));
    } else {
      const request = naive.hold(step.tokens, nowMs);
      if (request === "full") expect(() => queue.hold({ number: -1, ...step, sinceMs: 0 }, clockMs)).toThrow();
      else held.push(queue.hold(request, clockMs));
    }
  }
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ verb: fc.constant("hold"), tokens: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("cancel"), which: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({ verb: fc.constant("take"), tokensPerMs: fc.constantFrom(0, 0.5, 1, 4), most: fc.nat(12) }),
  },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("takeOverdue") }) },
  { weight: 3, arbitrary: fc.record({ verb: fc.constant("advance"), ms: fc.integer({ min: -2, max: 5 }) }) },
);

describe("the queue of held requests beside the naive one", () => {
  test("answers the same under random calls, also where the clock goes back", () => {
    const settings = fc.record({
      maxHeld: fc.integer({ min: 1, max: 6 }),
      ageing: fc.constantFrom(0, 0.25, 1), // whose products are exact, so that ties are ties
      maxWaitMs: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(fc.property(fc.array(step, { maxLength: 60, size: "max" }), settings, play), { numRuns: scaled(1_500) });
  });

  test("answers the same on all short sequences", () => {
    const alphabet: Step[] = [
      { verb: "hold", tokens: 1 },
      { verb: "hold", tokens: 3 },
      { verb: "cancel", which: 0 },
      { verb: "take", tokensPerMs: 1, most: 9 },
      { verb: "take", tokensPerMs: 0, most: 1 },
      { verb: "takeOverdue" },
      { verb: "advance", ms: 2 },
      { verb: "advance", ms: -1 },
    ];
    const length = scaled(10) >= 10 ? 5 : 4;
    for (let number = 0; number < alphabet.length ** length; number++) {
      const steps = Array.from({ length }, (_, at) => alphabet[Math.floor(number / 8 ** at) % 8] as Step);
      play(steps, { maxHeld: 2, ageing: 1, maxWaitMs: 1 });
    }
  });
});
