import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OptionError } from "../../src/errors.js";
import {
  BREAKER_COUNT_MAX,
  Breaker,
  type BreakerEnd,
  type BreakerPermit,
  type BreakerSettings,
  breakerSettings,
} from "../../src/gateway/breaker.js";
import { scaled } from "../support/scale.js";

interface NaiveRequest {
  readonly kind: "ordinary" | "probe" | "stray";
  /** The number of the state, counted from the first, that it began in. */
  readonly era: number;
  isOver: boolean;
}

/** A breaker that keeps the list of all ends of its state, and looks at the last of them. */
class NaiveBreaker {
  state: "closed" | "open" | "half-open" = "closed";
  openings = 0;
  #era = 0;
  #openedMs = 0;
  #ends: BreakerEnd[] = [];
  #probes: NaiveRequest[] = [];

  constructor(readonly settings: BreakerSettings) {}

  isAvailable(nowMs: number): boolean {
    if (this.state === "closed") return true;
    if (this.#probes.some(({ isOver }) => !isOver)) return false;
    const openForMs = nowMs - this.#openedMs;
    return this.state === "half-open" || openForMs < 0 || openForMs >= this.settings.openMs;
  }

  nextAvailableMs(nowMs: number): number {
    if (this.isAvailable(nowMs)) return nowMs;
    return this.state === "open" ? this.#openedMs + this.settings.openMs : Number.POSITIVE_INFINITY;
  }

  shown(nowMs: number): string {
    return this.state === "open" && this.isAvailable(nowMs) ? "half-open" : this.state;
  }

  begin(nowMs: number): NaiveRequest {
    const isAvailable = this.isAvailable(nowMs);
    if (isAvailable && this.state === "open") this.#enter("half-open");
    const kind = !isAvailable ? "stray" : this.state === "closed" ? "ordinary" : "probe";
    const request: NaiveRequest = { kind, era: this.#era, isOver: false };
    if (kind === "probe") this.#probes.push(request);
    return request;
  }

  end(request: NaiveRequest, end: BreakerEnd, nowMs: number): void {
    if (request.isOver) return;
    request.isOver = true;
    if (request.kind === "stray" || request.era !== this.#era || end === "neutral") return;
    this.#ends.push(end);
    const { failures, successes } = this.settings;
    const last = (count: number) => (this.#ends.length >= count ? this.#ends.slice(-count) : ["none"]);
    if (this.state === "half-open") {
      if (end === "failure") this.#open(nowMs);
      else if (last(successes).every((each) => each === "success")) this.#enter("closed");
    } else if (last(failures).every((each) => each === "failure")) this.#open(nowMs);
  }

  #open(nowMs: number): void {
    this.openings++;
    this.#openedMs = nowMs;
    this.#enter("open");
  }

  #enter(state: "closed" | "open" | "half-open"): void {
    this.state = state;
    this.#era++;
    this.#ends = [];
    this.#probes = [];
  }
}

type Step =
  | { readonly verb: "begin" }
  | { readonly verb: "end"; readonly which: number; readonly end: BreakerEnd }
  | { readonly verb: "advance"; readonly ms: number };

/** Plays steps on a breaker and on the naive one and compares all that either says. Ended requests are ended again, too. */
function play(steps: readonly Step[], settings: BreakerSettings): void {
  const told: boolean[] = [];
  const breaker = new Breaker(settings, (isOpen) => told.push(isOpen));
  const naive = new NaiveBreaker(settings);
  const requests: [BreakerPermit, NaiveRequest][] = [];
  let nowMs = 0;
  let changes = 0;
  for (const step of steps) {
    const wasClosed = naive.state === "closed";
    if (step.verb === "advance") nowMs += step.ms;
    if (step.verb === "begin") {
      const pair: [BreakerPermit, NaiveRequest] = [breaker.begin(nowMs), naive.begin(nowMs)];
      expect(pair[0].isProbe).toBe(pair[1].kind === "probe");
      requests.push(pair);
    }
    if (step.verb === "end" && requests.length > 0) {
      const [permit, request] = requests[step.which % requests.length] as [BreakerPermit, NaiveRequest];
      if (step.end === "neutral") permit.neutral();
      else permit[step.end](nowMs);
      naive.end(request, step.end, nowMs);
    }
    const isClosed = naive.state === "closed";
    if (isClosed !== wasClosed) changes++;
    const { openings } = breaker;
    const said = [breaker.state(nowMs), breaker.isAvailable(nowMs), breaker.nextAvailableMs(nowMs), openings];
    const right = [naive.shown(nowMs), naive.isAvailable(nowMs), naive.nextAvailableMs(nowMs), naive.openings];
    said.push(told.length, told.at(-1) ?? false);
    right.push(changes, !isClosed);
    if (said.some((each, at) => each !== right[at])) expect(said).toEqual(right);
  }
}

const end = fc.constantFrom<BreakerEnd>("success", "failure", "failure", "neutral");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ verb: "begin" }) },
  { weight: 5, arbitrary: fc.record({ verb: fc.constant("end"), which: fc.nat(40), end }) },
  { weight: 2, arbitrary: fc.record({ verb: fc.constant("advance"), ms: fc.integer({ min: -4, max: 8 }) }) },
);
const small = fc.integer({ min: 1, max: 3 });

describe("a breaker beside the naive one", () => {
  test("says the same under random requests, also where the clock goes back", () => {
    const settings = fc.record({ failures: small, openMs: fc.integer({ min: 1, max: 6 }), successes: small });
    fc.assert(fc.property(fc.array(step, { maxLength: 80, size: "max" }), settings, play), { numRuns: scaled(1_000) });
  });

  test.each([
    { failures: 1, openMs: 2, successes: 1 },
    { failures: 2, openMs: 2, successes: 1 },
    { failures: 1, openMs: 2, successes: 2 },
  ])("says the same in all short sequences, with %j", (settings) => {
    const alphabet: Step[] = [
      { verb: "begin" },
      { verb: "end", which: 0, end: "failure" },
      { verb: "end", which: 1, end: "success" },
      { verb: "end", which: 1, end: "failure" },
      { verb: "end", which: 1, end: "neutral" },
      { verb: "end", which: 2, end: "success" },
      { verb: "advance", ms: 2 },
      { verb: "advance", ms: -1 },
    ];
    const length = scaled(10) >= 10 ? 5 : 4;
    for (let number = 0; number < alphabet.length ** length; number++) {
      const steps = Array.from({ length }, (_, at) => alphabet[Math.floor(number / 8 ** at) % 8] as Step);
      play([{ verb: "begin" }, { verb: "begin" }, ...steps, { verb: "begin" }], settings);
    }
  });
});

const opened = (settings: Partial<BreakerSettings> = {}, atMs = 0) => {
  const breaker = new Breaker({ ...breakerSettings(), ...settings });
  for (let at = breakerSettings(settings).failures; at > 0; at--) breaker.begin(atMs).failure(atMs);
  return breaker;
};

describe("a breaker", () => {
  test("stays closed under 20 bad requests, and after nine failures; ten open it for a minute", () => {
    const breaker = new Breaker(breakerSettings());
    for (let at = 0; at < 20; at++) breaker.begin(0).neutral();
    for (let at = 0; at < 9; at++) breaker.begin(0).failure(0);
    breaker.begin(0).neutral();
    expect([breaker.state(0), breaker.openings]).toEqual(["closed", 0]);
    breaker.begin(0).failure(5);
    expect([breaker.state(5), breaker.openings, breaker.nextAvailableMs(5)]).toEqual(["open", 1, 60_005]);
    expect([breaker.isAvailable(60_004), breaker.isAvailable(60_005)]).toEqual([false, true]);
    expect([breaker.state(60_004), breaker.state(60_005)]).toEqual(["open", "half-open"]);
  });

  test("starts to count again with each success", () => {
    const breaker = new Breaker(breakerSettings({ failures: 2 }));
    for (let at = 0; at < 5; at++) {
      breaker.begin(0).failure(0);
      breaker.begin(0).success(0);
    }
    expect(breaker.openings).toBe(0);
  });

  test("lets a single probe through, and gives its place back when its end says nothing", () => {
    const breaker = opened({ openMs: 10 });
    const probe = breaker.begin(10);
    expect([probe.isProbe, breaker.isAvailable(1_000), breaker.nextAvailableMs(1_000)]).toEqual([
      true,
      false,
      Number.POSITIVE_INFINITY,
    ]);
    probe.neutral();
    expect([breaker.state(10), breaker.isAvailable(10), breaker.openings]).toEqual(["half-open", true, 1]);
    breaker.begin(10).success(11);
    expect(breaker.state(11)).toBe("closed");
  });

  test("opens anew for as long when the probe fails", () => {
    const breaker = opened({ openMs: 10 });
    breaker.begin(10).failure(15);
    expect([breaker.state(24), breaker.state(25), breaker.openings]).toEqual(["open", "half-open", 2]);
  });

  test("closes only after as many probes in a row as it is told", () => {
    const breaker = opened({ openMs: 10, successes: 2 });
    breaker.begin(10).success(10);
    expect([breaker.state(10), breaker.begin(10).isProbe]).toEqual(["half-open", true]);
    const failed = opened({ openMs: 10, successes: 2 });
    failed.begin(10).success(10);
    failed.begin(10).failure(10);
    failed.begin(20).success(20);
    expect(failed.state(20)).toBe("half-open");
    failed.begin(20).success(20);
    expect(failed.state(20)).toBe("closed");
  });

  test("is neither closed nor opened by requests from before it opened", () => {
    const breaker = new Breaker(breakerSettings({ failures: 1, openMs: 10 }));
    const old = [breaker.begin(0), breaker.begin(0), breaker.begin(0)];
    breaker.begin(0).failure(0);
    old[0]?.success(1);
    expect(breaker.state(1)).toBe("open");
    const probe = breaker.begin(10);
    old[1]?.failure(11);
    expect([breaker.state(11), breaker.isAvailable(11), breaker.openings]).toEqual(["half-open", false, 1]);
    probe.success(12);
    old[2]?.failure(13);
    expect([breaker.state(13), breaker.openings]).toEqual(["closed", 1]);
  });

  test("counts nothing of what was sent although it was open", () => {
    const breaker = opened({ failures: 1, openMs: 10 });
    const strays = [breaker.begin(1), breaker.begin(1)];
    strays[0]?.success(2);
    expect(breaker.state(2)).toBe("open");
    breaker.begin(10).success(10);
    strays[1]?.failure(11);
    expect([breaker.state(11), strays.some(({ isProbe }) => isProbe)]).toEqual(["closed", false]);
  });

  test("is not kept open by a clock that goes back", () => {
    const breaker = opened({ openMs: 10 }, 1_000_000);
    expect([breaker.isAvailable(1_000_005), breaker.isAvailable(999_999)]).toEqual([false, true]);
  });
});

describe("options of a breaker", () => {
  test("have the defaults of the field", () => {
    expect(breakerSettings()).toEqual({ failures: 10, openMs: 60_000, successes: 1 });
    expect(breakerSettings({ failures: undefined })).toEqual(breakerSettings());
  });

  test.each([
    ["failures", 1, BREAKER_COUNT_MAX],
    ["openMs", 1, 2 ** 31 - 1],
    ["successes", 1, BREAKER_COUNT_MAX],
  ])("%s goes from %d to %d", (name, least, most) => {
    for (const good of [least, most]) expect(breakerSettings({ [name]: good })).toMatchObject({ [name]: good });
    for (const bad of [least - 1, most + 1, 1.5, Number.NaN]) {
      const refused = expect(() => breakerSettings({ [name]: bad as number }));
      refused.toThrow(OptionError);
      refused.toThrow(`Expected breaker.${name} to be a whole number from ${least} to ${most}, got ${bad}.`);
    }
    for (const [bad, what] of [
      ["5", 'the string "5"'],
      [null, "null"],
      [Object.create(null), "an object"],
      [Symbol("5"), "a symbol"],
    ]) {
      const refused = expect(() => breakerSettings({ [name]: bad as number }));
      refused.toThrow(OptionError);
      refused.toThrow(`, got ${what}.`);
    }
  });

  test.each([null, 5, "on", true])("are an object, not %j", (options) => {
    expect(() => breakerSettings(options as never)).toThrow("Expected breaker to be an object, got");
  });
});
