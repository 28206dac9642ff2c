import { describe, expect, test } from "vitest";
import { LeastLoaded, SessionAffinity } from "../../src/disagg/placement.js";
import { type Decision, type DecisionCase, readDecisions } from "./placement-decisions.js";

const cases = readDecisions();
const byName = (name: string) => cases.find((one) => one.case === name) as DecisionCase;

/** The cases where the original does what nobody should: ours refuses it. */
const REFUSED = ["duplicate-ranks", "release-underflow", "no-prefill-workers", "no-decode-workers"];

/** A rank that nobody configured is recorded in this case, and returned by the original. */
const UNKNOWN_RANK_CASE = "affinity";

class Placement {
  readonly prefill: LeastLoaded;
  readonly decode: SessionAffinity;

  constructor({ prefillWorkers, decodeWorkers }: DecisionCase["config"]) {
    this.prefill = new LeastLoaded(prefillWorkers, { tieBreak: "first" });
    this.decode = new SessionAffinity(decodeWorkers);
  }

  /** Does what a line says, and returns the rank that was chosen. */
  run({ op, rank = -1, session = null }: Decision): number | undefined {
    const name = session ?? "";
    if (op === "choosePrefill") return this.prefill.choose();
    if (op === "chooseDecode") return session === null ? this.decode.choose() : this.decode.choose(session);
    if (op === "releasePrefill") this.prefill.release(rank);
    else if (op === "recordAffinity") this.decode.record(name, rank);
    else this.decode.evict(name);
    return undefined;
  }
}

function replay(one: DecisionCase): void {
  const placement = new Placement(one.config);
  for (const [line, decision] of one.decisions.entries()) {
    const chosen = placement.run(decision);
    const where = `${one.case}, operation ${line + 1}`;
    if (chosen !== undefined) expect(chosen, where).toBe(decision.rank);
    const inFlight = one.config.prefillWorkers.map((rank) => String(placement.prefill.inFlight(rank)));
    expect(inFlight, where).toEqual(decision.inFlight);
    expect(placement.decode.size, where).toBe(decision.sessions);
  }
}

describe("decisions of the original", () => {
  test("there are thirteen cases, and nine that a router should follow", () => {
    expect(cases).toHaveLength(13);
    expect(cases.filter((one) => !REFUSED.includes(one.case))).toHaveLength(9);
  });

  const followed = cases.filter((one) => !REFUSED.includes(one.case) && one.case !== UNKNOWN_RANK_CASE);
  test.each(followed)("$case: $note", (one) => replay(one));

  test("affinity: all but the session of a rank that nobody configured, whose record is ignored and counted", () => {
    const { config, decisions, ...rest } = byName(UNKNOWN_RANK_CASE);
    const known = new Set(config.decodeWorkers);
    const strange = decisions.findIndex(({ op, rank }) => op === "recordAffinity" && !known.has(rank as number));
    const { session } = decisions[strange] as Decision;
    const others = decisions.map((decision, line) => (line < strange ? decision : withoutOne(decision)));
    replay({ ...rest, config, decisions: others.filter((decision) => decision.session !== session) });

    const placement = new Placement(config);
    const ghosts = decisions.filter((decision) => decision.session === session);
    expect(ghosts.map((decision) => placement.run(decision))).toEqual([undefined, config.decodeWorkers[0]]);
    expect(placement.decode).toMatchObject({ size: 0, ignoredRecords: 1 });
  });
});

/** The state of a line, without the session that ours does not record. */
const withoutOne = (decision: Decision) => ({ ...decision, sessions: decision.sessions - 1 });

describe("what the original does and ours refuses", () => {
  test("duplicate-ranks: a rank that is configured twice", () => {
    const { prefillWorkers, decodeWorkers } = byName("duplicate-ranks").config;
    const code = "KVROUTE_DUPLICATE_RANK";
    expect(() => new LeastLoaded(prefillWorkers)).toThrow(expect.objectContaining({ code }));
    expect(() => new SessionAffinity(decodeWorkers)).toThrow(expect.objectContaining({ code }));
  });

  test("release-underflow: releasing an idle worker, after which nothing has changed", () => {
    const { config, decisions } = byName("release-underflow");
    const { prefill } = new Placement(config);
    const underflow = decisions.find(({ inFlight }) => inFlight.includes(String(2n ** 64n - 1n))) as Decision;
    expect(() => prefill.release(underflow.rank as number)).toThrow(
      expect.objectContaining({ code: "KVROUTE_RELEASE_IDLE" }),
    );
    expect(config.prefillWorkers.map((rank) => prefill.inFlight(rank))).toEqual([0, 0]);
    expect(prefill.choose()).toBe(config.prefillWorkers[0]);
  });

  test.each(["no-prefill-workers", "no-decode-workers"])("%s: choosing from nobody", (name) => {
    const { config, decisions } = byName(name);
    const panicked = decisions.filter(({ panic }) => panic !== undefined);
    expect(panicked.length).toBeGreaterThan(0);
    for (const decision of panicked) {
      const placement = new Placement(config);
      expect(() => placement.run(decision)).toThrow(
        expect.objectContaining({ code: "KVROUTE_NO_WORKERS", status: 503 }),
      );
    }
  });
});
