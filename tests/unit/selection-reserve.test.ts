import { describe, expect, test } from "vitest";
import { SelectionCache } from "../../src/selection/cache.js";
import { BLOCK, hashesOf, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (name: string, status?: number) => expect.objectContaining({ code: name, status });

describe("a retry", () => {
  test("finds its booking though the worker drains", () => {
    const { service } = new SelectionStage().add("a", "b");
    const stated = { selectionId: "r", workerId: "a", tokenIds: prompt(2) };
    service.reserve(stated);
    service.select({ selectionId: "s", tokenIds: prompt(3), pinnedWorker: { workerId: "a" } });
    service.reserve({ selectionId: "s" });
    service.select({ selectionId: "s", tokenIds: prompt(3), pinnedWorker: { workerId: "a" } });
    service.workers.drain("a");
    expect(service.reserve(stated).existing).toBe(true);
    expect(service.reserve({ selectionId: "s" }).existing).toBe(true);
    expect(() => service.reserve({ ...stated, selectionId: "t" })).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404));
  });

  test("books the whole prompt on a worker that has come back, which holds nothing of what was selected", () => {
    const stage = new SelectionStage().add("a");
    const { service } = stage;
    service.free(service.selectAndReserve({ tokenIds: prompt(4) }).selectionId);
    service.select({ selectionId: "s", tokenIds: prompt(4) });
    service.workers.remove("a");
    stage.add({ workerId: "a", blockSize: 2 * BLOCK });
    expect(() => service.reserve({ selectionId: "s" })).toThrow(code("KVROUTE_UNKNOWN_WORKER", 404)); // hashed otherwise
    service.workers.update("a", { blockSize: BLOCK });
    expect(service.reserve({ selectionId: "s" })).toMatchObject({ existing: false, effectivePrefillTokens: 4 * BLOCK });
    expect(stage.loads()).toEqual({ a: { tokens: 4 * BLOCK, blocks: 4, requests: 1 } });
  });
});

describe("a selection that somebody else has put into the cache", () => {
  test("is booked with what it says, and leaves nothing behind", () => {
    const cache = new SelectionCache();
    const stage = new SelectionStage({ cache }).add("a");
    const { service } = stage;
    const selection = {
      partition: { modelName: "default", routingGroup: "default" },
      worker: { workerId: "a", dpRank: 0 },
      sequenceHashes: hashesOf(prompt(4)),
      islTokens: 4 * BLOCK,
      effectivePrefillTokens: BLOCK,
      trackPrefillTokens: true,
    };
    cache.insert("s", selection, 0);
    service.reserve({ selectionId: "s" });
    expect(stage.loads()).toEqual({ a: { tokens: BLOCK, blocks: 4, requests: 1 } });
    const [row] = [...service.workers.partitions()].flatMap(({ schedulable }) => schedulable);
    expect(row?.load.missedBlocks).toBe(1);
    service.prefillComplete("s");
    service.free("s");
    expect(stage.loads()).toEqual({ a: { tokens: 0, blocks: 0, requests: 0 } });
  });
});
