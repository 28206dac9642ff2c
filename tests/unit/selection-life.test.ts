import { describe, expect, test } from "vitest";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { SelectionCache } from "../../src/selection/cache.js";
import { SessionTable } from "../../src/selection/sessions.js";
import { hashesOf, IDLE, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (code: string, status: number) => expect.objectContaining({ code, status });

describe("a selection that is booked", () => {
  test("is booked on the worker that was selected, once, and is pending no more", () => {
    const stage = new SelectionStage().add("a", "b");
    const { service } = stage;
    const selection = service.select({ tokenIds: prompt(3), selectionId: "s" });
    const booking = service.reserve({ selectionId: "s" });
    expect(booking).toMatchObject({
      worker: selection.worker,
      existing: false,
      effectivePrefillTokens: 12,
      expiresAtMs: 300_000,
    });
    expect(stage.loads()[`${selection.worker.workerId}`]).toEqual({ tokens: 12, blocks: 3, requests: 1 });
    expect(service.stats().pendingSelections).toBe(0);
  });

  test("again is the same booking", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    service.select({ tokenIds: prompt(3), selectionId: "s" });
    const first = service.reserve({ selectionId: "s" });
    stage.clock.ms = 10;
    expect(service.reserve({ selectionId: "s" })).toEqual({ ...first, existing: true, expiresAtMs: 300_010 });
    expect(stage.loads()).toEqual({ a: { tokens: 12, blocks: 3, requests: 1 } });
  });

  test("that was never selected, or too long ago, is unknown", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_SELECTION", 404));
    service.select({ tokenIds: prompt(1), selectionId: "s" });
    stage.clock.ms = 120_001;
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_SELECTION", 404));
  });

  test("on a worker that has gone since ends at once with an error, and stays to be tried again (dynamo 13088)", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    service.select({ tokenIds: prompt(2), selectionId: "s" });
    service.workers.remove("a");
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404));
    stage.add("a");
    expect(service.reserve({ selectionId: "s" }).worker.workerId).toBe("a");
  });

  test("on a worker that drains, or whose rank has gone, ends with an error", () => {
    const { service } = new SelectionStage().add({ workerId: "a", dataParallelSize: 2 });
    service.select({ tokenIds: prompt(2), selectionId: "s", pinnedWorker: { workerId: "a", dpRank: 1 } });
    service.workers.update("a", { dataParallelSize: 1 });
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404));
    service.workers.update("a", { dataParallelSize: 2 });
    service.workers.drain("a");
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404));
  });

  test("where there is no room for one more booking, stays to be tried again", () => {
    const { service } = new SelectionStage({ maxBookings: 1 }).add("a");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(1) });
    service.select({ tokenIds: prompt(2), selectionId: "s" });
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_BOOKINGS_FULL", 429));
    service.free("r");
    expect(service.reserve({ selectionId: "s" }).existing).toBe(false);
  });

  test("under an id that is booked for another prompt is a conflict, and the newer selection stays (dynamo 14570)", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    service.select({ tokenIds: prompt(2, 0), selectionId: "s" });
    service.reserve({ selectionId: "s" });
    service.select({ tokenIds: prompt(3, 1), selectionId: "s" });
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_BOOKING_CONFLICT", 409));
    expect(stage.loads()).toEqual({ a: { tokens: 8, blocks: 2, requests: 1 } });
    service.free("s");
    expect(service.reserve({ selectionId: "s" })).toMatchObject({ existing: false, islTokens: 12 });
  });

  test("its id is one for all partitions", () => {
    const { service } = new SelectionStage().add("a", { workerId: "b", modelName: "m" });
    service.reserve({ selectionId: "s", workerId: "a", tokenIds: prompt(1) });
    expect(() => service.reserve({ selectionId: "s", modelName: "m" })).toThrow(code("KVROUTE_BOOKING_CONFLICT", 409));
    service.select({ selectionId: "s", modelName: "m", tokenIds: prompt(1) });
    expect(() => service.reserve({ selectionId: "s", modelName: "m" })).toThrow(code("KVROUTE_BOOKING_CONFLICT", 409));
    expect(() => service.selectAndReserve({ selectionId: "s", modelName: "m", tokenIds: prompt(1) })).toThrow(
      code("KVROUTE_BOOKING_CONFLICT", 409),
    );
  });
});

describe("a request that is booked where its caller says", () => {
  test("drops what was selected under its id", () => {
    const { service } = new SelectionStage().add("a", "b");
    service.select({ tokenIds: prompt(2), selectionId: "s" });
    expect(service.reserve({ selectionId: "s", workerId: "b", tokenIds: prompt(2) }).worker.workerId).toBe("b");
    expect(service.stats().pendingSelections).toBe(0);
  });

  test("keeps what was selected under its id where it fails", () => {
    const { service } = new SelectionStage().add("a");
    service.select({ tokenIds: prompt(2), selectionId: "s" });
    expect(() => service.reserve({ selectionId: "s", workerId: "x", tokenIds: [1] })).toThrow(
      code("KVROUTE_UNKNOWN_WORKER", 404),
    );
    expect(service.reserve({ selectionId: "s" }).islTokens).toBe(8);
  });

  test("counts the prefill that the caller says, which is no more than the prompt", () => {
    const stage = new SelectionStage({ trackPrefillTokens: false }).add("a");
    const { service } = stage;
    const request = { selectionId: "s", workerId: "a", tokenIds: prompt(3), effectivePrefillTokens: 5 };
    expect(() => service.reserve({ ...request, effectivePrefillTokens: 13 })).toThrow(
      code("KVROUTE_ARGUMENT_RANGE", 400),
    );
    expect(service.reserve(request).effectivePrefillTokens).toBe(5);
    expect(stage.loads()).toEqual({ a: { tokens: 5, blocks: 3, requests: 1 } });
    service.reserve({ ...request, selectionId: "t", effectivePrefillTokens: undefined });
    expect(stage.loads()).toEqual({ a: { tokens: 5, blocks: 3, requests: 2 } }); // the service tracks none by itself
  });

  test("again is the same booking, and something else a conflict", () => {
    const { service } = new SelectionStage().add("a", "b");
    const request = { selectionId: "s", workerId: "a", tokenIds: prompt(3), expectedOutputTokens: 7 };
    service.reserve(request);
    expect(service.reserve(request).existing).toBe(true);
    for (const other of [
      { workerId: "b" },
      { tokenIds: prompt(3, 1) },
      { tokenIds: [...prompt(3), 1] },
      { expectedOutputTokens: 8 },
      { effectivePrefillTokens: 12 },
    ]) {
      expect(() => service.reserve({ ...request, ...other })).toThrow(code("KVROUTE_BOOKING_CONFLICT", 409));
    }
  });

  test("on a worker of another model, or one that is incomplete, is refused", () => {
    const stage = new SelectionStage().add({ workerId: "a", modelName: "m" });
    stage.service.workers.add({ workerId: "b" });
    for (const workerId of ["a", "b"]) {
      expect(() => stage.service.reserve({ selectionId: "s", workerId, tokenIds: [1] })).toThrow(
        code("KVROUTE_UNKNOWN_WORKER", 404),
      );
    }
  });
});

describe("select and reserve in one", () => {
  test("makes an id, and the same id again is the same booking whatever is best by now", () => {
    const stage = new SelectionStage().add("a", "b");
    const { service } = stage;
    const first = service.selectAndReserve({ tokenIds: prompt(3) });
    expect(first).toMatchObject({
      selectionId: "made-0",
      existing: false,
      overlapBlocks: 0,
      effectivePrefillTokens: 12,
    });
    const again = service.selectAndReserve({ tokenIds: prompt(3), selectionId: "made-0" });
    expect(again).toMatchObject({ worker: first.worker, existing: true, overlapBlocks: 0, effectivePrefillTokens: 12 });
    expect(service.stats().bookings).toBe(1);
  });

  test("drops what was selected under its id before", () => {
    const { service } = new SelectionStage().add("a");
    service.select({ tokenIds: prompt(1), selectionId: "s" });
    service.selectAndReserve({ tokenIds: prompt(1), selectionId: "s" });
    expect(service.stats()).toMatchObject({ bookings: 1, pendingSelections: 0 });
  });
});

describe("a booking", () => {
  const booked = (tokens = prompt(3)) => {
    const stage = new SelectionStage().add("a");
    stage.service.reserve({ selectionId: "s", workerId: "a", tokenIds: tokens });
    return stage;
  };

  test("stops being prefill with its first token, once", () => {
    const stage = booked();
    stage.service.prefillComplete("s");
    stage.service.prefillComplete("s");
    expect(stage.loads()).toEqual({ a: { tokens: 0, blocks: 3, requests: 1 } });
  });

  test("grows with its output, and decays as it is told", () => {
    const stage = booked();
    stage.service.outputBlock("s");
    expect(stage.loads()["a"]?.blocks).toBe(4);
    stage.service.outputBlock("s", 0.5);
    expect(stage.loads()["a"]?.blocks).toBe(2.5); // five blocks, each counting half
    stage.service.reserve({ selectionId: "t", workerId: "a", tokenIds: prompt(3) });
    stage.service.outputBlock("s", 0.5);
    expect(stage.loads()["a"]?.blocks).toBe(4.5); // three shared blocks count whole, three of output half
    expect(() => stage.service.outputBlock("s", 1.5)).toThrow(code("KVROUTE_ARGUMENT_RANGE", 400));
    stage.service.free("s");
    stage.service.free("t");
    expect(stage.loads()).toEqual({ a: IDLE });
  });

  test("shares its blocks with others on its worker", () => {
    const stage = booked();
    stage.service.reserve({ selectionId: "t", workerId: "a", tokenIds: prompt(5) });
    expect(stage.loads()).toEqual({ a: { tokens: 12 + 8, blocks: 5, requests: 2 } });
    stage.service.free("s");
    expect(stage.loads()).toEqual({ a: { tokens: 8, blocks: 5, requests: 1 } });
  });

  test("is freed once, with all it has", () => {
    const stage = booked();
    stage.service.outputBlock("s");
    expect(stage.service.free("s")).toBe(true);
    expect(stage.service.free("s")).toBe(false);
    expect(stage.loads()).toEqual({ a: IDLE });
  });

  test("that has gone is unknown to every call of its life", () => {
    const { service } = booked();
    service.free("s");
    const calls = [
      () => service.prefillComplete("s"),
      () => service.outputBlock("s"),
      () => service.touch("s"),
      () => service.reportCachedTokens("s", 0),
    ];
    for (const call of calls) expect(call).toThrow(code("KVROUTE_UNKNOWN_BOOKING", 404));
  });

  test("whose prompt has no full block counts its tokens and request", () => {
    const stage = booked(prompt(1).subarray(0, 3));
    expect(stage.loads()).toEqual({ a: { tokens: 3, blocks: 0, requests: 1 } });
    stage.service.free("s");
    expect(stage.loads()).toEqual({ a: IDLE });
  });
});

describe("a lease", () => {
  test("is renewed by whatever is heard, through twenty minutes of a slow stream (dynamo 11303)", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    service.selectAndReserve({ tokenIds: prompt(3), selectionId: "s" });
    const calls = [
      () => service.prefillComplete("s"),
      () => service.outputBlock("s"),
      () => service.touch("s"),
      () => service.reportCachedTokens("s", 0),
      () => service.selectAndReserve({ tokenIds: prompt(3), selectionId: "s" }),
    ];
    for (const call of calls) {
      stage.clock.ms += 240_000;
      call();
    }
    expect(service.stats().bookings).toBe(1);
    expect(stage.expired).toEqual([]);
  });

  test("runs out when nothing is heard: the booking is freed, counted and reported with the reason", () => {
    const stage = new SelectionStage({ leaseMs: 1_000 }).add("a");
    const { service } = stage;
    service.selectAndReserve({ tokenIds: prompt(3), selectionId: "s" });
    stage.clock.ms = 1_000;
    expect(service.expire()).toEqual([]); // its last millisecond
    stage.clock.ms = 1_001;
    expect(service.expire()).toEqual([
      { selectionId: "s", worker: { workerId: "a", dpRank: 0 }, reason: "lease-expired" },
    ]);
    expect(stage.expired).toEqual(["s lease-expired"]);
    expect(stage.loads()).toEqual({ a: IDLE });
    expect(service.stats()).toMatchObject({ bookings: 0, expiredBookings: 1 });
  });

  test("that has run out is ended by any call, a bounded number at a time", () => {
    const stage = new SelectionStage({ leaseMs: 1 }).add("a");
    const { service } = stage;
    for (let own = 0; own < 100; own++) service.selectAndReserve({ tokenIds: prompt(1, own) });
    stage.clock.ms = 10;
    service.loads();
    expect(service.stats().bookings).toBe(36);
    expect(service.expire()).toHaveLength(36);
  });

  test("of one whose time has come is not renewed by the call that ends it", () => {
    const stage = new SelectionStage({ leaseMs: 1_000 }).add("a");
    stage.service.selectAndReserve({ tokenIds: prompt(3), selectionId: "s" });
    stage.clock.ms = 1_001;
    expect(() => stage.service.touch("s")).toThrow(code("KVROUTE_UNKNOWN_BOOKING", 404));
  });
});

describe("sessions", () => {
  const tokenIds = prompt(2);

  test("stay with the worker that answered, and move to the one that answers later", () => {
    const { service } = new SelectionStage().add("a", "b");
    const turn = (pin?: string) => {
      const pinnedWorker = pin === undefined ? undefined : { workerId: pin };
      const selection = service.selectAndReserve({ tokenIds, session: "s", tenant: "t", pinnedWorker });
      service.prefillComplete(selection.selectionId);
      service.free(selection.selectionId);
      return selection;
    };
    expect(turn("a").decision).toBe("initialize");
    expect(turn()).toMatchObject({ decision: "retain", worker: { workerId: "a" } });
    expect(turn("b").decision).toBe("switch"); // a was not allowed
    expect(turn().decision).toBe("retain");
    expect(service.stats().sessions).toBe(1);
  });

  test("are not kept for a request that never answered", () => {
    const { service } = new SelectionStage().add("a");
    service.free(service.selectAndReserve({ tokenIds, session: "s" }).selectionId);
    expect(service.select({ tokenIds, session: "s" }).decision).toBe("initialize");
  });

  test("spill when their worker is much busier, and return only when the cost says so", () => {
    const { service } = new SelectionStage().add("a", "b");
    const turn = () => service.selectAndReserve({ tokenIds, session: "s" });
    const first = turn();
    service.prefillComplete(first.selectionId);
    const home = first.worker.workerId as string;
    for (let own = 0; own < 9; own++) {
      service.reserve({ selectionId: `load${own}`, workerId: home, tokenIds: prompt(40, own + 1) });
    }
    const spilled = turn();
    expect(spilled.decision).toBe("spill");
    service.prefillComplete(spilled.selectionId);
    for (let own = 0; own < 9; own++) service.free(`load${own}`);
    expect(turn()).toMatchObject({ decision: "retain", worker: spilled.worker });
  });

  test("of two tenants with one id are two (peers 52)", () => {
    const { service } = new SelectionStage().add("a", "b");
    for (const [tenant, workerId] of [
      ["x", "a"],
      ["y", "b"],
    ] as const) {
      service.reserve({ selectionId: tenant, workerId, tokenIds: [1], session: "s", tenant });
      service.prefillComplete(tenant);
      service.free(tenant);
    }
    const worker = (tenant: string) => service.select({ tokenIds: [1], session: "s", tenant }).worker.workerId;
    expect([worker("x"), worker("y"), worker("x")]).toEqual(["a", "b", "a"]);
  });
});

describe("what a worker keeps is learnt from what engines report", () => {
  test("an over-prediction shrinks its part of the index by 2 %, an under-prediction grows it, one block is no difference", () => {
    const stage = new SelectionStage().add({ workerId: "a", totalKvBlocks: 100 });
    const { service } = stage;
    service.selectAndReserve({ tokenIds: prompt(100), selectionId: "s" });
    const kept = () => service.overlapScores({ tokenIds: prompt(100) })[0]?.overlapBlocks;
    service.free("s");
    expect(kept()).toBe(100);
    service.selectAndReserve({ tokenIds: prompt(100), selectionId: "s" });
    service.reportCachedTokens("s", 99 * 4);
    service.free("s");
    expect(kept()).toBe(100);
    service.selectAndReserve({ tokenIds: prompt(100), selectionId: "s" });
    service.reportCachedTokens("s", 50 * 4);
    service.free("s");
    expect(kept()).toBe(98);
    expect(service.stats().prediction).toEqual({ reports: 2, meanErrorTokens: (1 + 50) * 2 });
  });

  test("where KV events feed the index, bookings do not, and reports change nothing but the error", () => {
    const { service } = new SelectionStage({ kvEvents: true }).add({ workerId: "a", totalKvBlocks: 10 });
    service.selectAndReserve({ tokenIds: prompt(5), selectionId: "s" });
    expect(service.stats().index.entries).toBe(0);
    expect(service.select({ tokenIds: prompt(5) }).overlapBlocks).toBe(5); // its blocks are on their way
    service.reportCachedTokens("s", 20);
    service.free("s");
    expect(service.select({ tokenIds: prompt(5) }).overlapBlocks).toBe(0);
    expect(service.stats().prediction.reports).toBe(1);
  });
});

test("a booking keeps its hashes, whatever its caller does with those that it was told", () => {
  const stage = new SelectionStage().add("a");
  const selection = stage.service.selectAndReserve({ tokenIds: prompt(3) });
  selection.sequenceHashes.fill(0n);
  stage.service.free(selection.selectionId);
  expect(stage.loads()).toEqual({ a: IDLE });
});

test("a booking that the index has no memory for books nothing", () => {
  const stage = new SelectionStage({ index: new PrefixIndex({ maxMemoryBytes: 3 * 65_536 }) }).add("a");
  const request = (blocks: number) => ({ selectionId: `r${blocks}`, workerId: "a", tokenIds: prompt(blocks, blocks) });
  expect(() => stage.service.reserve(request(20_000))).toThrow(
    expect.objectContaining({ code: "KVROUTE_MEMORY_LIMIT" }),
  );
  expect(stage.loads()).toEqual({ a: IDLE });
  expect(stage.service.stats()).toMatchObject({ bookings: 0, index: { entries: 0 } });
  expect(stage.service.reserve(request(20)).existing).toBe(false);
});

test("what was dropped for want of room or time is counted", () => {
  const stage = new SelectionStage({
    index: new PrefixIndex({ maxEntries: 4 }),
    cache: new SelectionCache({ maxEntries: 1, ttlMs: 10 }),
    sessions: new SessionTable({ maxSessions: 1 }),
  }).add("a");
  const { service } = stage;
  for (const own of [0, 1]) {
    service.select({ tokenIds: prompt(1), selectionId: `s${own}` });
    service.selectAndReserve({ tokenIds: prompt(3, own), selectionId: `b${own}`, session: `${own}` });
    service.prefillComplete(`b${own}`);
  }
  stage.clock.ms = 11;
  service.select({ tokenIds: prompt(1), selectionId: "s" });
  expect(service.stats().dropped).toEqual({
    selections: { evicted: 1, expired: 1 },
    sessions: { evicted: 1, expired: 0 },
    indexEntries: { evicted: 2, expired: 0 },
  });
});

test("hashes in the place of tokens book the same blocks", () => {
  const stage = new SelectionStage().add("a");
  stage.service.reserve({ selectionId: "s", workerId: "a", sequenceHashes: hashesOf(prompt(3)), islTokens: 12 });
  stage.service.reserve({ selectionId: "t", workerId: "a", tokenIds: prompt(3) });
  expect(stage.loads()).toEqual({ a: { tokens: 12, blocks: 3, requests: 2 } });
});
