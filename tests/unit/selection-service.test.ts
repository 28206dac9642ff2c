import { describe, expect, test } from "vitest";
import { kv, roundRobin } from "../../src/selection/policy.js";
import { BLOCK, hashesOf, IDLE, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (code: string, status: number) => expect.objectContaining({ code, status });

describe("select", () => {
  test("chooses the worker that holds the prompt, and says how much of it", () => {
    const { service } = new SelectionStage().add("a", "b");
    const first = service.selectAndReserve({ tokenIds: prompt(8) });
    service.free(first.selectionId);
    const again = service.select({ tokenIds: prompt(10, 0, 0) });
    expect(again.worker).toEqual(first.worker);
    expect(again).toMatchObject({ overlapBlocks: 8, cachedTokens: 32, effectivePrefillTokens: 8, islTokens: 40 });
    expect(again.potentialDecodeBlocks).toBe(10);
  });

  test("books nothing", () => {
    const stage = new SelectionStage().add("a");
    stage.service.select({ tokenIds: prompt(8), selectionId: "s" });
    expect(stage.loads()).toEqual({ a: IDLE });
    expect(stage.service.stats()).toMatchObject({
      bookings: 0,
      pendingSelections: 1,
      index: { blocks: 0, entries: 0 },
    });
  });

  test("takes hashes in the place of tokens, and copies them", () => {
    const { service } = new SelectionStage().add("a");
    const sequenceHashes = hashesOf(prompt(3));
    service.select({ sequenceHashes, islTokens: 13, selectionId: "s" });
    const wanted = sequenceHashes.slice();
    sequenceHashes.fill(0n);
    service.reserve({ selectionId: "s" });
    expect(service.overlapScores({ sequenceHashes: [...wanted], islTokens: 13 })).toEqual([
      { worker: { workerId: "a", dpRank: 0 }, overlapBlocks: 3 },
    ]);
    service.free("s");
    expect(service.loads()[0]?.loads[0]?.activeBlocks).toBe(0);
  });

  test.each([
    ["no prompt", {}],
    ["hashes without a length", { sequenceHashes: [1n] }],
    ["a hash that is none", { sequenceHashes: [-1n], islTokens: 4 }],
    ["a token that is none", { tokenIds: [1, -1] }],
    ["an empty prompt of hashes", { sequenceHashes: [], islTokens: 0 }],
    ["an output length that is none", { tokenIds: [1], expectedOutputTokens: -1 }],
    ["a pin on nothing", { tokenIds: [1], pinnedWorker: {} as never }],
    ["taints that are no list", { tokenIds: [1], requiredTaints: "x" as never }],
    ["a preference that is no number", { tokenIds: [1], preferredTaints: { x: Number.NaN } }],
    ["an id that is none", { tokenIds: [1], selectionId: 7 as never }],
  ])("refuses %s with a 400, and changes nothing", (_, request) => {
    const stage = new SelectionStage().add("a");
    expect(() => stage.service.select(request)).toThrow(expect.objectContaining({ status: 400 }));
    expect(stage.service.stats().pendingSelections).toBe(0);
    expect(stage.loads()).toEqual({ a: IDLE });
  });

  test("adapters and salts have caches of their own", () => {
    const { service } = new SelectionStage().add("a");
    service.selectAndReserve({ tokenIds: prompt(4), loraName: "x" });
    expect(service.select({ tokenIds: prompt(4) }).overlapBlocks).toBe(0);
    expect(service.select({ tokenIds: prompt(4), loraName: "x" }).overlapBlocks).toBe(4);
    expect(service.select({ tokenIds: prompt(4), loraName: "x", cacheSalt: "t" }).overlapBlocks).toBe(0);
  });

  test("an unknown model has no worker", () => {
    const { service } = new SelectionStage().add("a");
    expect(() => service.select({ tokenIds: [1], modelName: "m" })).toThrow(code("KVROUTE_NO_WORKER", 503));
  });

  test("a policy of the user's own chooses, and one that chooses nobody is told so", () => {
    const last = { name: "last", choose: (candidates: readonly unknown[]) => ({ index: candidates.length - 1 }) };
    const { service } = new SelectionStage({ policy: last }).add("a", "b", "c");
    expect(service.select({ tokenIds: [1] }).worker.workerId).toBe("c");
    const nobody = new SelectionStage({ policy: { name: "nobody", choose: () => ({ index: 1 }) } }).add("a");
    expect(() => nobody.service.select({ tokenIds: [1] })).toThrow(expect.objectContaining({ code: "KVROUTE_OPTION" }));
  });
});

describe("who may serve a request", () => {
  const labelled = () =>
    new SelectionStage({ policy: roundRobin() }).add(
      { workerId: "a", taints: ["fast", "eu"] },
      { workerId: "b", taints: ["eu"] },
      { workerId: "c", dataParallelSize: 2 },
    );
  const chosen = ({ service }: SelectionStage, constraints: object): string[] => {
    const names = Array.from({ length: 8 }, () => service.select({ tokenIds: [1], ...constraints }).worker);
    return [...new Set(names.map(({ workerId, dpRank }) => `${workerId}${dpRank}`))].sort();
  };

  test("a pin leaves one worker, or one rank of it", () => {
    expect(chosen(labelled(), { pinnedWorker: { workerId: "c" } })).toEqual(["c0", "c1"]);
    expect(chosen(labelled(), { pinnedWorker: { workerId: "c", dpRank: 1 } })).toEqual(["c1"]);
  });

  test("an allow-list leaves its workers, and required taints those that have all of them", () => {
    expect(chosen(labelled(), { allowedWorkerIds: ["a", "c"] })).toEqual(["a0", "c0", "c1"]);
    expect(chosen(labelled(), { requiredTaints: ["eu"] })).toEqual(["a0", "b0"]);
    expect(chosen(labelled(), { requiredTaints: ["eu", "fast"] })).toEqual(["a0"]);
  });

  test("where none is left, the error says so", () => {
    const { service } = labelled();
    expect(() => service.select({ tokenIds: [1], requiredTaints: ["us"] })).toThrow(code("KVROUTE_NO_WORKER", 503));
    expect(() => service.select({ tokenIds: [1], pinnedWorker: { workerId: "x" } })).toThrow(
      code("KVROUTE_NO_WORKER", 503),
    );
  });

  test("a preferred taint wins between equals, and a disliked one loses", () => {
    const { service } = new SelectionStage({ policy: kv() }).add({ workerId: "a", taints: ["x"] }, "b");
    for (let time = 0; time < 9; time++) {
      expect(service.select({ tokenIds: prompt(4), preferredTaints: { x: 1 } }).worker.workerId).toBe("a");
      expect(service.select({ tokenIds: prompt(4), preferredTaints: { x: -1 } }).worker.workerId).toBe("b");
    }
  });

  test("the explanation names those who were kept out, and every candidate's terms", () => {
    const { service } = new SelectionStage({ busy: { activeRequests: 0 } }).add("a", "b", {
      workerId: "c",
      taints: ["x"],
    });
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    const { explanation } = service.select({ tokenIds: prompt(2), allowedWorkerIds: ["a", "b"], explain: true });
    expect(explanation?.policy).toBe("kv");
    expect(explanation?.excluded).toEqual([
      { worker: { workerId: "a", dpRank: 0 }, reason: "its activeRequests, 1, is above the threshold 0" },
      { worker: { workerId: "c", dpRank: 0 }, reason: "it is not among the allowed workers" },
    ]);
    expect(explanation?.candidates).toMatchObject([{ isChosen: true, terms: { missedTokens: 8, waitTokens: 0 } }]);
    expect(service.select({ tokenIds: prompt(2) }).explanation).toBeUndefined();
  });
});

describe.each(["kv", "round-robin"])("busy workers under %s", (name) => {
  const policy = () => (name === "kv" ? kv() : roundRobin());

  test("a worker above a threshold is not chosen while another is below (dynamo 9688)", () => {
    const { service } = new SelectionStage({ policy: policy(), busy: { activePrefillTokens: 8 } }).add("a", "b");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(3) });
    for (let time = 0; time < 6; time++) expect(service.select({ tokenIds: prompt(3) }).worker.workerId).toBe("b");
    service.prefillComplete("r");
    const names = Array.from({ length: 6 }, () => service.select({ tokenIds: prompt(3) }).worker.workerId);
    expect(names).toContain("a");
  });

  test("exactly at the threshold it is still chosen", () => {
    const { service } = new SelectionStage({ policy: policy(), busy: { activePrefillTokens: 12 } }).add("a");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(3) });
    expect(service.select({ tokenIds: prompt(3) }).worker.workerId).toBe("a");
  });

  test("where all are busy the request is refused with a 429", () => {
    const { service } = new SelectionStage({ policy: policy(), busy: { activeRequests: 0 } }).add("a");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(3) });
    expect(() => service.select({ tokenIds: prompt(3) })).toThrow(code("KVROUTE_WORKERS_BUSY", 429));
  });

  test("what a worker reports decides before what was booked, and neither overwrites the other (dynamo 7753)", () => {
    const stage = new SelectionStage({ policy: policy(), busy: { kvUsage: 0.5 } });
    stage.add({ workerId: "a", totalKvBlocks: 10 }, { workerId: "b", totalKvBlocks: 10 });
    const { service } = stage;
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(6) });
    expect(service.select({ tokenIds: prompt(1, 1) }).worker.workerId).toBe("b");
    service.workers.reportUsage({ workerId: "a", dpRank: 0 }, { kvUsage: 0.1 });
    service.workers.reportUsage({ workerId: "b", dpRank: 0 }, { kvUsage: 0.6 });
    expect(service.select({ tokenIds: prompt(1, 1) }).worker.workerId).toBe("a");
    expect(stage.loads()).toMatchObject({ a: { blocks: 6 }, b: { blocks: 0 } });
  });

  test("a threshold in parts asks how much the engine takes at a time", () => {
    const stage = new SelectionStage({ policy: policy(), busy: { activePrefillFraction: 0.5 } });
    stage.add({ workerId: "a", maxNumBatchedTokens: 20 }, "b");
    stage.service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(3) });
    stage.service.reserve({ selectionId: "q", workerId: "b", tokenIds: prompt(3) });
    for (let time = 0; time < 6; time++) expect(stage.service.select({ tokenIds: [1] }).worker.workerId).toBe("b");
  });
});

describe("the figures that a service is asked for", () => {
  test("potential loads count what a worker has, and what the prompt adds there", () => {
    const { service } = new SelectionStage().add("a", "b");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(4) });
    expect(service.potentialLoads({ tokenIds: prompt(6) })).toEqual([
      {
        worker: { workerId: "a", dpRank: 0 },
        potentialPrefillTokens: 16 + 2 * BLOCK,
        potentialDecodeBlocks: 6,
        activeRequests: 1,
      },
      {
        worker: { workerId: "b", dpRank: 0 },
        potentialPrefillTokens: 6 * BLOCK,
        potentialDecodeBlocks: 6,
        activeRequests: 0,
      },
    ]);
  });

  test("what one prompt shares with active requests is not what the next one shares", () => {
    const { service } = new SelectionStage().add("a");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(4, 0, 4) });
    const blocks = (tokenIds: Uint32Array) => service.potentialLoads({ tokenIds })[0]?.potentialDecodeBlocks;
    expect([blocks(prompt(4, 0, 4)), blocks(prompt(6, 1)), blocks(prompt(6, 1, 2))]).toEqual([4, 10, 8]);
  });

  test("a worker without load scores as idle (dynamo 7836)", () => {
    const { service } = new SelectionStage().add("a", "b", "c");
    for (let own = 0; own < 30; own++) {
      const { selectionId } = service.selectAndReserve({ tokenIds: prompt(2, own) });
      service.prefillComplete(selectionId);
      service.free(selectionId);
    }
    expect(service.potentialLoads({ tokenIds: [1] }).map((load) => load.potentialPrefillTokens)).toEqual([1, 1, 1]);
  });
});
