import { describe, expect, test } from "vitest";
import { sessionPin } from "../../src/selection/policy.js";
import type { SelectionService } from "../../src/selection/service.js";
import { IDLE, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (code: string, status: number) => expect.objectContaining({ code, status });

describe("a worker's record", () => {
  test("has the defaults of what was not said", () => {
    const { service } = new SelectionStage();
    expect(service.workers.add({ workerId: "a", blockSize: 16 })).toEqual({
      workerId: "a",
      modelName: "default",
      routingGroup: "default",
      endpoint: undefined,
      blockSize: 16,
      dataParallelStartRank: 0,
      dataParallelSize: 1,
      maxNumBatchedTokens: undefined,
      totalKvBlocks: undefined,
      weight: 1,
      taints: [],
      lifecycle: "schedulable",
      notSchedulableReasons: [],
    });
  });

  test("says why a worker cannot be chosen", () => {
    const { service } = new SelectionStage({ requireEndpoint: true });
    const added = service.workers.add({ workerId: "a" });
    expect(added.lifecycle).toBe("incomplete");
    expect(added.notSchedulableReasons).toEqual(["it has no endpoint", "it has no blockSize"]);
    expect(service.workers.update("a", { endpoint: "http://a", blockSize: 4 }).lifecycle).toBe("schedulable");
    expect(service.workers.add({ workerId: "b", endpoint: "http://b", blockSize: 8 }).notSchedulableReasons).toEqual([
      "its blockSize is 8, but that of its partition is 4",
    ]);
    expect(service.workers.drain("a")).toMatchObject({
      lifecycle: "draining",
      notSchedulableReasons: ["it is draining"],
    });
    expect(service.workers.remove("a").lifecycle).toBe("unschedulable");
    expect(service.workers.get("a")).toBeUndefined();
  });

  test("of another block size becomes schedulable when those before it have gone", () => {
    const { service } = new SelectionStage();
    service.workers.add({ workerId: "a", blockSize: 4 });
    service.workers.add({ workerId: "b", blockSize: 8 });
    expect(service.select({ tokenIds: prompt(4) })).toMatchObject({ worker: { workerId: "a" }, blockSize: 4 });
    service.workers.remove("a");
    expect(service.workers.get("b")?.lifecycle).toBe("schedulable");
    expect(service.select({ tokenIds: prompt(4) })).toMatchObject({ worker: { workerId: "b" }, blockSize: 8 });
  });

  test.each([
    ["an id that is none", { workerId: 1.5 }],
    ["a block size of 0", { workerId: "a", blockSize: 0 }],
    ["a block size above the most", { workerId: "a", blockSize: 4_097 }],
    ["no ranks", { workerId: "a", dataParallelSize: 0 }],
    ["a weight of 0", { workerId: "a", weight: 0 }],
    ["a taint that is none", { workerId: "a", taints: [1 as never] }],
    ["too many taints", { workerId: "a", taints: Array.from({ length: 65 }, String) }],
    ["a name without end", { workerId: "a", modelName: "m".repeat(1_025) }],
  ])("is not made with %s", (_, registration) => {
    const { service } = new SelectionStage();
    expect(() => service.workers.add(registration)).toThrow(expect.objectContaining({ status: 400 }));
    expect(service.workers.list()).toEqual([]);
  });

  test("is listed by model and group, in the order of coming", () => {
    const { service } = new SelectionStage().add(
      "a",
      { workerId: "b", modelName: "m" },
      { workerId: 3n, routingGroup: "g" },
    );
    const ids = (filter: object) => service.workers.list(filter).map(({ workerId }) => workerId);
    expect(ids({})).toEqual(["a", "b", 3n]);
    expect(ids({ modelName: "m" })).toEqual(["b"]);
    expect(ids({ modelName: "default" })).toEqual(["a", 3n]);
    expect(ids({ routingGroup: "g" })).toEqual([3n]);
  });
});

describe("ids", () => {
  test("1 and 1n are one worker, and the text is another", () => {
    const { service } = new SelectionStage();
    service.workers.add({ workerId: 1, blockSize: 4 });
    service.workers.add({ workerId: 1n, blockSize: 4 });
    service.workers.add({ workerId: "1", blockSize: 4 });
    expect(service.workers.size).toBe(2);
  });

  test("of nobody are unknown to every call", () => {
    const { workers } = new SelectionStage().add("b").service;
    const calls = [
      () => workers.remove("a"),
      () => workers.drain("a"),
      () => workers.update("a", {}),
      () => workers.reportUsage({ workerId: "a", dpRank: 0 }, {}),
      () => workers.reportUsage({ workerId: "b", dpRank: 1 }, {}),
    ];
    for (const call of calls) expect(call).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404));
  });
});

describe("a change of a worker", () => {
  const booked = () => {
    const stage = new SelectionStage().add({ workerId: "a", dataParallelSize: 2 }, "b");
    stage.service.reserve({ selectionId: "r0", workerId: "a", tokenIds: prompt(2) });
    stage.service.reserve({ selectionId: "r1", workerId: "a", dpRank: 1, tokenIds: prompt(3) });
    return stage;
  };

  test("keeps what is booked on ranks that stay, and frees the rest with a reason", () => {
    const stage = booked();
    stage.service.workers.add({ workerId: "a", blockSize: 4, endpoint: "http://new" });
    expect(stage.loads()).toEqual({ a: { tokens: 8, blocks: 2, requests: 1 }, b: IDLE });
    expect(stage.expired).toEqual(["r1 worker-removed"]);
    expect(stage.service.overlapScores({ tokenIds: prompt(3) })).toEqual([
      { worker: { workerId: "a", dpRank: 0 }, overlapBlocks: 2 },
    ]);
  });

  test("of its ranks gives a rank that comes back a row of its own, which sees its cache", () => {
    const { service } = new SelectionStage().add({ workerId: "a", dataParallelSize: 2 });
    const held = () => service.overlapScores({ tokenIds: prompt(3) });
    const compute = () => {
      service.reserve({ selectionId: "r", workerId: "a", dpRank: 1, tokenIds: prompt(3) });
      service.free("r");
    };
    compute();
    const before = held();
    expect(before).toEqual([{ worker: { workerId: "a", dpRank: 1 }, overlapBlocks: 3 }]);
    service.workers.update("a", { dataParallelSize: 1 });
    service.workers.update("a", { dataParallelSize: 2 });
    expect(held()).toEqual([]);
    compute();
    expect(held()).toEqual(before);
  });

  test("to another model moves it, empty", () => {
    const stage = booked();
    stage.service.workers.update("a", { modelName: "m" });
    expect(stage.expired).toEqual(["r0 worker-removed", "r1 worker-removed"]);
    expect(stage.service.loads({ modelName: "m" })[0]?.loads).toHaveLength(2);
    expect(stage.service.overlapScores({ modelName: "m", tokenIds: prompt(3) })).toEqual([]);
  });

  test("of its block size starts it empty", () => {
    const stage = booked();
    stage.service.workers.remove("b");
    stage.service.workers.update("a", { blockSize: 8 });
    expect(stage.loads()).toEqual({ a: IDLE, "a/1": IDLE });
    expect(stage.service.stats().index).toEqual({ blocks: 0, entries: 0 });
  });

  test("that is refused changes nothing", () => {
    const stage = booked();
    const before = stage.service.workers.get("a");
    expect(() => stage.service.workers.update("a", { weight: -1 })).toThrow(code("KVROUTE_ARGUMENT_RANGE", 400));
    expect(stage.service.workers.get("a")).toEqual(before);
    expect(stage.service.stats().bookings).toBe(2);
  });
});

describe("a worker that is drained", () => {
  test("finishes what it has and gets nothing more, until it is added again", () => {
    const stage = new SelectionStage().add("a", "b");
    const { service } = stage;
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    service.workers.drain("a");
    for (let time = 0; time < 5; time++) expect(service.select({ tokenIds: prompt(2) }).worker.workerId).toBe("b");
    service.outputBlock("r");
    expect(stage.loads()).toEqual({ a: { tokens: 8, blocks: 3, requests: 1 }, b: IDLE });
    service.free("r");
    stage.add("a");
    expect(service.select({ tokenIds: prompt(2) }).worker.workerId).toBe("a");
  });

  test.each([{ modelName: "m" }, { blockSize: 8 }, { weight: 2 }])(
    "goes on draining when it is changed: %o",
    (update) => {
      const { service } = new SelectionStage().add("a");
      service.workers.drain("a");
      expect(service.workers.update("a", update).lifecycle).toBe("draining");
      expect(service.stats().schedulableRanks).toBe(0);
    },
  );

  test("goes on draining when it is refused", () => {
    const { service } = new SelectionStage({ maxPartitions: 1 }).add("a");
    service.workers.drain("a");
    expect(() => service.workers.add({ workerId: "a", modelName: "m" })).toThrow(code("KVROUTE_CATALOG_FULL", 429));
    expect(service.workers.get("a")?.lifecycle).toBe("draining");
  });
});

describe("a worker that is removed", () => {
  test("is matched by nothing, and starts empty when it comes back at the same address (smg 2132, 2313)", () => {
    const { service } = new SelectionStage().add("w1", "w2", "w3");
    const warm = service.reserve({ selectionId: "r", workerId: "w2", tokenIds: prompt(4), session: "s" });
    service.prefillComplete(warm.selectionId);
    service.workers.remove("w2");
    for (let time = 0; time < 9; time++) {
      expect(service.select({ tokenIds: prompt(4), session: "s" }).worker.workerId).not.toBe("w2");
    }
    expect(service.stats()).toMatchObject({ bookings: 0, sessions: 0, index: { blocks: 0, entries: 0 } });
    service.workers.add({ workerId: "w2", blockSize: 4 });
    expect(service.overlapScores({ tokenIds: prompt(4) })).toEqual([]);
    expect(service.select({ tokenIds: prompt(4), session: "s" }).decision).toBe("initialize");
  });

  test("is forgotten by a policy that remembers workers as well", () => {
    const { service } = new SelectionStage({ policy: sessionPin() }).add("a", "b");
    const choose = () => service.select({ tokenIds: [1], session: "s" }).worker.workerId;
    const home = choose() as string;
    expect(choose()).toBe(home);
    service.workers.remove(home);
    service.workers.add({ workerId: home, blockSize: 4 });
    service.reserve({ selectionId: "r", workerId: home, tokenIds: prompt(9) });
    expect(choose()).toBe(home === "a" ? "b" : "a"); // the session is a new one, and the other is idle
  });

  test("leaves no partition behind, through ten thousand adapters (dynamo 10729)", () => {
    const { service } = new SelectionStage({ maxPartitions: 4 });
    for (let adapter = 0; adapter < 10_000; adapter++) {
      const modelName = `adapter-${adapter}`;
      service.workers.add({ workerId: `w${adapter % 3}`, modelName, blockSize: 4 });
      service.selectAndReserve({ modelName, tokenIds: prompt(2), selectionId: "r" });
      service.free("r");
      if (adapter % 1_000 === 0) expect([...service.workers.partitions()].length).toBeLessThanOrEqual(3);
    }
  });

  test.each([
    [
      "that comes later",
      (service: SelectionService) => service.workers.add({ workerId: "c", blockSize: 4, weight: 2 }),
    ],
    [
      "that was draining",
      (service: SelectionService) => service.workers.add({ workerId: "d", blockSize: 4, weight: 2 }),
    ],
  ])("leaves no debt of work to one %s: it begins as the idlest for its weight", (_, join) => {
    const { service } = new SelectionStage().add("a", "b", "d");
    service.workers.drain("d");
    for (let own = 0; own < 10; own++) service.free(service.selectAndReserve({ tokenIds: prompt(9, own) }).selectionId);
    const { workerId } = join(service);
    const missed = new Map(
      [...service.workers.partitions()].flatMap(({ schedulable }) =>
        schedulable.map(({ worker, load }) => [worker.workerId, load.missedBlocks] as const),
      ),
    );
    expect(missed.get("a")).toBe(45);
    expect(missed.get(workerId)).toBe(2 * Math.min(missed.get("a") as number, missed.get("b") as number));
  });
});

describe("limits", () => {
  test("as many workers as may be, and not one more", () => {
    const { service } = new SelectionStage({ maxWorkers: 2 }).add("a", "b");
    expect(() => service.workers.add({ workerId: "c" })).toThrow(code("KVROUTE_CATALOG_FULL", 429));
    service.workers.add({ workerId: "b", blockSize: 4 }); // replaces
    service.workers.remove("a");
    service.workers.add({ workerId: "c" });
    expect(service.workers.size).toBe(2);
  });

  test("as many partitions as may be, and not one more", () => {
    const { service } = new SelectionStage({ maxPartitions: 1 }).add("a", "b");
    expect(() => service.workers.add({ workerId: "c", modelName: "m" })).toThrow(code("KVROUTE_CATALOG_FULL", 429));
    expect(() => service.workers.update("b", { modelName: "m" })).toThrow(code("KVROUTE_CATALOG_FULL", 429));
    expect(service.workers.get("b")?.modelName).toBe("default");
  });

  test.each([{ maxWorkers: 0 }, { maxPartitions: 1.5 }, { maxBookings: 0 }, { leaseMs: 0 }, { busy: { kvUsage: -1 } }])(
    "are checked when the service is made: %o",
    (options) => {
      expect(() => new SelectionStage(options)).toThrow(/Expected/);
    },
  );
});
