import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Crew, type Pair } from "../../src/disagg/router/crew.js";
import type { Transport } from "../../src/transport/types.js";
import { scaled } from "../support/scale.js";

type Role = "prefill" | "decode";
type Step = readonly ["choose"] | readonly ["finish", number] | readonly ["add" | "drain" | "remove", number];

const roleOf = (rank: number): Role => (rank < 10 ? "prefill" : "decode");
const rank = fc.constantFrom(1, 2, 11, 12);
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(["choose"] as const) },
  { weight: 3, arbitrary: fc.tuple(fc.constant("finish" as const), fc.nat(5)) },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom("add" as const, "drain" as const, "remove" as const), rank) },
);

const crewOf = (prefillWorkers: number[], decodeWorkers: number[]) =>
  new Crew({ transport: {} as Transport, prefillWorkers, decodeWorkers, tieBreak: "first" });

/** A naive crew: lists, counted anew each time. */
class Naive {
  readonly atWork = { prefill: [1, 2], decode: [11, 12] };
  readonly draining = new Set<number>();
  readonly open: Pair[] = [];

  load(rank: number): number {
    return this.open.filter(({ prefillRank, decodeRank }) => prefillRank === rank || decodeRank === rank).length;
  }

  get canServe(): boolean {
    return this.atWork.prefill.length > 0 && this.atWork.decode.length > 0;
  }

  leave(rank: number): void {
    const role = roleOf(rank);
    this.atWork[role] = this.atWork[role].filter((other) => other !== rank);
    this.draining.delete(rank);
  }
}

const attempt = (act: () => unknown) => {
  try {
    return act();
  } catch (error) {
    return (error as { code: string }).code;
  }
};

function play(crew: Crew, naive: Naive, [verb, argument]: Step): void {
  if (verb === "choose") {
    const chosen = attempt(() => crew.choose(undefined, 0));
    if (!naive.canServe) {
      expect(chosen).toBe("KVROUTE_NO_WORKERS");
      return;
    }
    const { prefillRank, decodeRank } = chosen as Pair;
    const least = Math.min(...naive.atWork.prefill.map((one) => naive.load(one)));
    expect(prefillRank).toBe(naive.atWork.prefill.find((one) => naive.load(one) === least));
    expect(naive.atWork.decode).toContain(decodeRank);
    naive.open.push({ prefillRank, decodeRank });
  } else if (verb === "finish") {
    const [pair] = naive.open.splice(argument % Math.max(1, naive.open.length), 1);
    if (pair === undefined) return;
    crew.releasePrefill(pair.prefillRank);
    crew.releaseDecode(pair.decodeRank);
  } else {
    const isAtWork = naive.atWork[roleOf(argument)].includes(argument);
    if (verb === "add") {
      expect(attempt(() => crew.add(argument, roleOf(argument)))).toBe(isAtWork ? "KVROUTE_DUPLICATE_RANK" : undefined);
      if (!isAtWork) naive.atWork[roleOf(argument)].push(argument);
      naive.draining.delete(argument);
    } else if (verb === "drain") {
      const isKnown = isAtWork || naive.draining.has(argument);
      expect(attempt(() => crew.drain(argument))).toBe(isKnown ? undefined : "KVROUTE_UNKNOWN_RANK");
      naive.leave(argument);
      if (isKnown) naive.draining.add(argument);
    } else {
      expect(crew.remove(argument)).toBe(isAtWork || naive.draining.has(argument));
      naive.leave(argument);
    }
  }
}

describe("a crew", () => {
  test("agrees with naive lists while workers come, drain, go and come back", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40 }), (plan) => {
        const crew = crewOf([1, 2], [11, 12]);
        const naive = new Naive();
        for (const step of plan) {
          play(crew, naive, step);
          expect(crew.canServe()).toBe(naive.canServe);
          for (const one of [1, 2, 11, 12]) expect(crew.inFlight(one)).toBe(naive.load(one));
          const known = [...naive.atWork.prefill, ...naive.atWork.decode, ...naive.draining];
          const loaded = [1, 2, 11, 12].filter((one) => naive.load(one) > 0);
          expect(
            crew
              .loads()
              .map((worker) => worker.rank)
              .sort(),
          ).toEqual([...new Set([...known, ...loaded])].sort());
        }
      }),
      { numRuns: scaled(1_000) },
    );
  });

  test("a rank works as one kind only", () => {
    expect(() => crewOf([1], [1])).toThrow(expect.objectContaining({ code: "KVROUTE_DUPLICATE_RANK" }));
    expect(() => crewOf([1], [2]).add(1, "decode")).toThrow(
      expect.objectContaining({ code: "KVROUTE_DUPLICATE_RANK" }),
    );
  });

  test("a refused choice takes nobody's turn", () => {
    const crew = crewOf([1], [11, 12]);
    expect(() => crew.choose(undefined, 0, { prefillRank: 1 })).toThrow(
      expect.objectContaining({ code: "KVROUTE_NO_WORKERS" }),
    );
    expect(crew.choose(undefined, 0)).toEqual({ prefillRank: 1, decodeRank: 11 });
  });
});
