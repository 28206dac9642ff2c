import { describe, expect, test } from "vitest";
import { WEIGHT_MAX, WEIGHT_MIN } from "../../src/selection/catalog/registration.js";
import { createPolicy, POLICY_NAMES } from "../../src/selection/policy.js";
import { HoldQueue } from "../../src/selection/queue.js";
import { SelectionService } from "../../src/selection/service.js";
import { SessionTable } from "../../src/selection/sessions.js";
import { BLOCK, IDLE, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (name: string, status?: number) => expect.objectContaining({ code: name, status });

/** What nobody may notice of a call that was refused. */
function stateOf(stage: SelectionStage): unknown {
  return [stage.service.stats(), stage.loads()];
}

describe("numbers at their limits", () => {
  test("the longest prompts leave nothing behind: their sums are exact", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    const islTokens = 2 ** 29;
    for (const [at, selectionId] of ["r", "s", "t"].entries()) {
      service.reserve({ selectionId, workerId: "a", sequenceHashes: [BigInt(at)], islTokens });
    }
    expect(stage.loads()).toEqual({ a: { tokens: 3 * islTokens, blocks: 3, requests: 3 } });
    for (const selectionId of ["r", "t", "s"]) service.free(selectionId);
    expect(stage.loads()).toEqual({ a: IDLE });
    for (const tooMany of [islTokens + 1, Number.MAX_SAFE_INTEGER]) {
      expect(() => service.select({ sequenceHashes: [1n], islTokens: tooMany })).toThrow(
        `Expected islTokens to be a whole number from 1 to 536870912, got ${tooMany}.`,
      );
    }
  });

  test.each(POLICY_NAMES)("%s shares by the heaviest and the lightest weights that there may be", (name) => {
    for (const weight of [WEIGHT_MIN, WEIGHT_MAX]) {
      const { service } = new SelectionStage({ policy: createPolicy(name) });
      for (const workerId of ["a", "b"]) service.workers.add({ workerId, blockSize: BLOCK, weight });
      const chosen = Array.from({ length: 40 }, (_, own) => {
        const { selectionId, worker } = service.selectAndReserve({ tokenIds: prompt(2, own), session: `s${own}` });
        service.free(selectionId);
        return worker.workerId;
      });
      expect(new Set(chosen)).toEqual(new Set(["a", "b"]));
    }
  });

  test.each([WEIGHT_MIN / 2, WEIGHT_MAX * 2, 1e308, 5e-324, Number.NaN, "2"])("refuse a weight of %s", (weight) => {
    const stage = new SelectionStage().add("a");
    const before = stateOf(stage);
    const update = { weight: weight as number };
    for (const call of [
      () => stage.service.workers.update("a", update),
      () => stage.service.workers.add({ workerId: "b", ...update }),
    ]) {
      expect(call).toThrow(code("KVROUTE_ARGUMENT_RANGE", 400));
    }
    expect(stateOf(stage)).toEqual(before);
  });
});

describe("a session that is none", () => {
  test.each([
    ["a session that is no text", { session: 5 }],
    ["a tenant that is no text", { session: "s", tenant: null }],
  ])("is refused with every call, and nothing changes: %s", (_, fields) => {
    const stage = new SelectionStage().add("a");
    const before = stateOf(stage);
    const request = { selectionId: "r", tokenIds: prompt(2), ...(fields as object) };
    for (const call of [
      () => stage.service.select(request),
      () => stage.service.selectAndReserve(request),
      () => stage.service.reserve({ ...request, workerId: "a" }),
    ]) {
      expect(call).toThrow(code("KVROUTE_ARGUMENT_TYPE", 400));
    }
    expect(stateOf(stage)).toEqual(before);
  });

  test("since its name is too long names none, and is not kept either", () => {
    const { service } = new SelectionStage().add("a");
    const session = "x".repeat(257);
    for (let time = 0; time < 2; time++) {
      const selection = service.selectAndReserve({ tokenIds: prompt(2), session });
      expect(selection.decision).toBe(undefined);
      service.prefillComplete(selection.selectionId);
    }
    expect(service.stats().sessions).toBe(0);
  });

  test.each([5, null, undefined])("is refused by the table of sessions: %s", (name) => {
    const table = new SessionTable();
    const text = name as unknown as string;
    const worker = { workerId: "a", dpRank: 0 };
    for (const call of [
      () => table.find(text, "s", 0),
      () => table.find("t", text, 0),
      () => table.record(text, "s", worker, 0),
      () => table.record("t", text, worker, 0),
      () => table.forget("t", text),
    ]) {
      expect(call).toThrow(code("KVROUTE_ARGUMENT_TYPE", 400));
    }
    expect(table.size).toBe(0);
  });
});

describe("what a program is made of", () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, "5"])(
    "a clock that says %s is refused, and nothing changes",
    (time) => {
      const stage = new SelectionStage().add("a");
      const { service, clock } = stage;
      service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
      const before = stateOf(stage);
      clock.now = () => time as number;
      for (const call of [
        () => service.touch("r"),
        () => service.outputBlock("r"),
        () => service.free("r"),
        () => service.expire(),
        () => service.selectAndReserve({ tokenIds: prompt(2) }),
      ]) {
        expect(call).toThrow(/Expected clock\.now\(\) to be a/);
      }
      clock.now = () => clock.ms;
      expect(stateOf(stage)).toEqual(before);
    },
  );

  test.each([undefined, null, {}, { index: "length" }, { index: -1 }, { index: 0.5 }])(
    "a policy that chooses %o is refused, and nothing is booked",
    (choice) => {
      const policy = { name: "odd", choose: () => choice as unknown as { index: number } };
      const stage = new SelectionStage({ policy }).add("a");
      expect(() => stage.service.selectAndReserve({ tokenIds: prompt(2) })).toThrow(
        expect.objectContaining({ code: "KVROUTE_OPTION", message: expect.stringContaining("from 0 to 0, got") }),
      );
      expect(stage.loads()).toEqual({ a: IDLE });
    },
  );

  test("a policy that throws books nothing, and the next request finds all as it was", () => {
    const policy = createPolicy("kv");
    let isBroken = true;
    const choose: typeof policy.choose = (...all) => {
      if (isBroken) throw new Error("broken");
      return policy.choose(...all);
    };
    const stage = new SelectionStage({ policy: { name: "p", choose } }).add("a");
    const before = stateOf(stage);
    expect(() => stage.service.selectAndReserve({ tokenIds: prompt(2), selectionId: "r" })).toThrow("broken");
    expect(stateOf(stage)).toEqual(before);
    isBroken = false;
    expect(stage.service.selectAndReserve({ tokenIds: prompt(2), selectionId: "r" }).existing).toBe(false);
  });

  test("a policy that throws when it is to forget a worker leaves it forgotten by all others", () => {
    const policy = {
      ...createPolicy("round-robin"),
      removeWorker: () => {
        throw new Error("broken");
      },
    };
    const stage = new SelectionStage({ policy, maxPartitions: 1 }).add("a");
    stage.service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    expect(() => stage.service.workers.remove("a")).toThrow("broken");
    expect(stage.service.stats()).toMatchObject({ workers: 0, bookings: 0, index: { entries: 0 } });
    expect(stage.expired).toEqual(["r worker-removed"]);
    stage.add({ workerId: "b", modelName: "m" }); // its partition has gone as well
  });

  test.each([
    { leaseMs: "5" },
    { leaseMs: Number.NaN },
    { busy: { kvUsage: "1" } },
    { busy: { activeRequests: Number.NaN } },
    { sessions: undefined, maxBookings: "5" },
  ])("options of the wrong kind are refused: %o", (options) => {
    expect(() => new SelectionService(options as object)).toThrow(/^Expected/);
  });

  test("times of the wrong kind are refused", () => {
    expect(() => new SessionTable({ idleMs: "5" as unknown as number })).toThrow(code("KVROUTE_OPTION"));
    expect(() => new HoldQueue({ maxWaitMs: "5" as unknown as number })).toThrow(code("KVROUTE_OPTION"));
    expect(() => createPolicy("cache-aware", { matchThreshold: "0.5" as unknown as number })).toThrow(
      code("KVROUTE_OPTION"),
    );
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1])("a queue is not told of a speed of %s", (speed) => {
    const queue = new HoldQueue<number>();
    queue.hold(1, 0);
    expect(() => queue.take(5, speed, (item) => item)).toThrow(code("KVROUTE_ARGUMENT_RANGE", 400));
    expect(queue.size).toBe(1);
  });
});
