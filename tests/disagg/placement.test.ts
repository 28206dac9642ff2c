import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LeastLoaded, SessionAffinity } from "../../src/disagg/placement.js";
import { KvrouteError } from "../../src/errors.js";
import { same } from "../support/agree.js";
import { scaled } from "../support/scale.js";
import { NaiveLeastLoaded, NaiveSessionAffinity } from "./placement-naive.js";

/** What a call answers, or the code of what it throws. */
function outcome(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    if (error instanceof KvrouteError) return error.code;
    throw error;
  }
}

/** Runs all sequences of a length, of steps numbered from 0. */
function everySequence(steps: number, length: number, run: (sequence: readonly number[]) => void): void {
  const sequence = new Array<number>(length).fill(0);
  for (let code = 0; code < steps ** length; code++) {
    let rest = code;
    for (let at = 0; at < length; at++) {
      sequence[at] = rest % steps;
      rest = Math.floor(rest / steps);
    }
    run(sequence);
  }
}

const RANKS = [5, 2, 9];

describe("LeastLoaded beside the naive one", () => {
  type Subject = LeastLoaded | NaiveLeastLoaded;
  const verbs = ["release", "addWorker", "drainWorker", "removeWorker"] as const;

  const steps: ((subject: Subject) => unknown)[] = [
    (subject) => subject.choose(),
    ...verbs.flatMap((verb) => [...RANKS, 77].map((rank) => (subject: Subject) => subject[verb](rank))),
  ];

  function compare(sequence: readonly number[], tieBreak: "rotate" | "first"): void {
    const ours = new LeastLoaded(RANKS, { tieBreak });
    const naive = new NaiveLeastLoaded(RANKS, tieBreak === "rotate");
    for (const number of sequence) {
      const step = steps[number] as (subject: Subject) => unknown;
      same(
        `${sequence}`,
        outcome(() => step(naive)),
        outcome(() => step(ours)),
      );
      same(`${sequence}`, naive.loads(), ours.loads());
    }
  }

  test.each(["rotate", "first"] as const)("does the same in every sequence of three steps (%s)", (tieBreak) => {
    everySequence(steps.length, 3, (sequence) => compare(sequence, tieBreak));
  });

  test.each(["rotate", "first"] as const)("does the same in long random sequences (%s)", (tieBreak) => {
    const choose = { weight: 3, arbitrary: fc.constant(0) };
    const any = { weight: 4, arbitrary: fc.nat(steps.length - 1) };
    const sequence = fc.array(fc.oneof(choose, any), { maxLength: 60, size: "max" });
    fc.assert(
      fc.property(sequence, (numbers) => compare(numbers, tieBreak)),
      { numRuns: scaled(500) },
    );
  });
});

describe("LeastLoaded", () => {
  test("lets equals take turns", () => {
    const placement = new LeastLoaded(RANKS);
    const chosen = Array.from({ length: 5 }, () => {
      const rank = placement.choose();
      placement.release(rank);
      return rank;
    });
    expect(chosen).toEqual([5, 2, 9, 5, 2]);
  });

  test("never lets two workers at work differ by more than one while nothing is released", () => {
    const placement = new LeastLoaded([1, 2, 3, 4]);
    for (let choice = 0; choice < 50; choice++) {
      placement.choose();
      const loads = placement.loads().map((load) => load.inFlight);
      expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
    }
  });

  test("counts the requests from before for a worker that was removed and came back", () => {
    const placement = new LeastLoaded([1]);
    placement.choose();
    placement.removeWorker(1);
    expect(placement.loads()).toEqual([{ rank: 1, inFlight: 1, state: "removed" }]);
    placement.addWorker(1);
    placement.choose();
    placement.release(1);
    placement.release(1);
    expect(() => placement.release(1)).toThrow(expect.objectContaining({ code: "KVROUTE_RELEASE_IDLE" }));
  });

  test("forgets a worker that was removed with the last of its requests", () => {
    const placement = new LeastLoaded([1]);
    placement.choose();
    placement.removeWorker(1);
    placement.release(1);
    expect(placement.loads()).toEqual([]);
    placement.release(1); // unknown by now, and ignored
  });
});

describe("SessionAffinity beside the naive one", () => {
  interface Step {
    readonly verb: "choose" | "record" | "evict" | "addWorker" | "drainWorker" | "removeWorker";
    readonly session: string | undefined;
    readonly rank: number;
  }
  type Subject = SessionAffinity | NaiveSessionAffinity;

  function run(subject: Subject, { verb, session, rank }: Step, now: number): unknown {
    if (verb === "choose") return subject.choose(session, now);
    if (verb === "record") return subject.record(session ?? "", rank, now);
    if (verb === "evict") return subject.evict(session ?? "");
    return subject[verb](rank);
  }

  function compare(sequence: readonly (Step & { later: number })[], maxSessions: number, ttlMs: number): void {
    const ours = new SessionAffinity(RANKS, { maxSessions, ttlMs });
    const naive = new NaiveSessionAffinity(RANKS, maxSessions, ttlMs);
    let now = 0;
    for (const step of sequence) {
      now += step.later;
      const wanted = outcome(() => run(naive, step, now));
      const got = outcome(() => run(ours, step, now));
      if (wanted === got && naive.size === ours.size && naive.ignoredRecords === ours.ignoredRecords) continue;
      const [before, after] = [naive, ours].map(({ size, ignoredRecords }) => ({ size, ignoredRecords }));
      expect({ got, ...after }, JSON.stringify(sequence)).toEqual({ got: wanted, ...before });
    }
  }

  const few: Step[] = [
    { verb: "choose", session: undefined, rank: 0 },
    ...["a", "b"].map((session): Step => ({ verb: "choose", session, rank: 0 })),
    ...["a", "b"].flatMap((session) => [5, 2, 77].map((rank): Step => ({ verb: "record", session, rank }))),
    { verb: "evict", session: "a", rank: 0 },
    ...(["addWorker", "drainWorker", "removeWorker"] as const).map(
      (verb): Step => ({ verb, session: undefined, rank: 5 }),
    ),
  ];

  test("does the same in every sequence of four steps, with room for one session and a short memory", () => {
    everySequence(few.length, 4, (sequence) => {
      compare(
        sequence.map((number) => ({ ...(few[number] as Step), later: 1 })),
        1,
        2,
      );
    });
  });

  test("does the same in long random sequences", () => {
    const step = fc.record({
      verb: fc.constantFrom(
        "choose",
        "choose",
        "record",
        "record",
        "evict",
        "addWorker",
        "drainWorker",
        "removeWorker",
      ),
      session: fc.constantFrom(undefined, "a", "b", "c", "d", "__proto__"),
      rank: fc.constantFrom(...RANKS, 77),
      later: fc.nat(3),
    });
    const limits = [fc.nat(4), fc.constantFrom(0, 2, 10, Number.POSITIVE_INFINITY)] as const;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: "max" }), ...limits, (steps, maxSessions, ttlMs) => {
        compare(steps as (Step & { later: number })[], maxSessions, ttlMs);
      }),
      { numRuns: scaled(1_000) },
    );
  });
});

describe("SessionAffinity", () => {
  test("remembers a session up to its time, and not a moment longer", () => {
    const placement = new SessionAffinity(RANKS, { ttlMs: 10 });
    placement.record("a", 9, 100);
    expect(placement.choose("a", 110)).toBe(9);
    expect(placement.choose("a", 110.5)).toBe(5);
    expect(placement.size).toBe(0);
  });

  test("forgets the session that was least recently used first, and a choice is a use", () => {
    const placement = new SessionAffinity(RANKS, { maxSessions: 2 });
    placement.record("a", 9);
    placement.record("b", 9);
    placement.choose("a");
    placement.record("c", 9);
    expect([placement.choose("a"), placement.choose("b"), placement.choose("c")]).toEqual([9, 5, 9]);
  });

  test("gives a session back to a worker that was drained and came back, and not to one that was removed", () => {
    const placement = new SessionAffinity([1, 2]);
    placement.record("a", 2);
    placement.drainWorker(2);
    expect(placement.choose("a")).toBe(1);
    placement.addWorker(2);
    expect(placement.choose("a")).toBe(2);
    placement.removeWorker(2);
    expect(placement.size).toBe(0);
  });
});

describe("bad input", () => {
  const tooMany = Array.from({ length: 65_537 }, (_, rank) => rank);
  const enough = tooMany.slice(1);

  test.each<[string, () => unknown, string]>([
    ["ranks that are no list", () => new LeastLoaded(3 as never), "KVROUTE_ARGUMENT_TYPE"],
    ["a rank above 32 bits", () => new LeastLoaded([2 ** 32]), "KVROUTE_ARGUMENT_RANGE"],
    ["a rank that is a text", () => new SessionAffinity(["1" as never]), "KVROUTE_ARGUMENT_TYPE"],
    ["too many ranks", () => new LeastLoaded(tooMany), "KVROUTE_TOO_MANY_RANKS"],
    ["one rank too many", () => new LeastLoaded(enough).addWorker(0), "KVROUTE_TOO_MANY_RANKS"],
    ["one rank too many", () => new SessionAffinity(enough).addWorker(0), "KVROUTE_TOO_MANY_RANKS"],
    ["a tie break that is none", () => new LeastLoaded([1], { tieBreak: "last" as never }), "KVROUTE_ARGUMENT_RANGE"],
    ["a rank to release that is none", () => new LeastLoaded([1]).release(-1), "KVROUTE_ARGUMENT_RANGE"],
    ["too many sessions", () => new SessionAffinity([1], { maxSessions: 2 ** 22 + 1 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a negative number of sessions", () => new SessionAffinity([1], { maxSessions: -1 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a negative time to live", () => new SessionAffinity([1], { ttlMs: -1 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a time to live that is none", () => new SessionAffinity([1], { ttlMs: Number.NaN }), "KVROUTE_ARGUMENT_RANGE"],
    [
      "no time, where sessions expire",
      () => new SessionAffinity([1], { ttlMs: 1 }).choose("a"),
      "KVROUTE_ARGUMENT_TYPE",
    ],
    [
      "no time, where sessions expire",
      () => new SessionAffinity([1], { ttlMs: 1 }).record("a", 1),
      "KVROUTE_ARGUMENT_TYPE",
    ],
    ["a session that is no text", () => new SessionAffinity([1]).choose(7 as never), "KVROUTE_ARGUMENT_TYPE"],
    [
      "a session that is too long",
      () => new SessionAffinity([1]).record("x".repeat(1_025), 1),
      "KVROUTE_ARGUMENT_RANGE",
    ],
  ])("%s is refused", (_, call, code) => {
    expect(outcome(call)).toBe(code);
  });

  test("as much as may be is taken", () => {
    expect(new LeastLoaded(enough).choose()).toBe(1);
    const placement = new SessionAffinity([1, 2], { maxSessions: 2 ** 22 });
    placement.record("x".repeat(1_024), 2);
    expect(placement.choose("x".repeat(1_024))).toBe(2);
  });
});
