import { describe, expect, test } from "vitest";
import { BLOCK, prompt, SelectionStage } from "../support/selection-stage.js";

describe("what is said of a booking twice", () => {
  test("does not bring a session back to the worker that answered earlier", () => {
    const { service } = new SelectionStage().add("a", "b");
    for (const workerId of ["a", "b"]) {
      service.reserve({ selectionId: workerId, workerId, tokenIds: prompt(2), session: "s" });
      service.prefillComplete(workerId);
    }
    service.prefillComplete("a"); // the answer to the first call was lost
    for (const id of ["a", "b"]) service.free(id);
    const pinned = { tokenIds: prompt(2), session: "s", pinnedWorker: { workerId: "b" } };
    expect(service.select(pinned).decision).toBe("retain");
  });

  test("teaches once how much an engine has cached", () => {
    const { service } = new SelectionStage().add({ workerId: "a", totalKvBlocks: 1_000 });
    const limit = () =>
      [...service.workers.partitions()].flatMap(({ schedulable }) => schedulable.map(({ indexLimit }) => indexLimit));
    service.free(service.selectAndReserve({ tokenIds: prompt(8) }).selectionId);
    const { selectionId, cachedTokens } = service.selectAndReserve({ tokenIds: prompt(8) });
    expect(cachedTokens).toBe(8 * BLOCK);
    for (let chunk = 0; chunk < 9; chunk++) service.reportCachedTokens(selectionId, 0);
    expect(limit()).toEqual([980]);
    expect(service.stats().prediction).toEqual({ reports: 1, meanErrorTokens: 8 * BLOCK });
  });

  test("decides a booking's busyness as the first time", () => {
    const { service } = new SelectionStage({ busy: { kvUsage: 0.5 } }).add({ workerId: "a", totalKvBlocks: 4 });
    const request = { selectionId: "r", tokenIds: prompt(3) };
    const first = service.selectAndReserve(request);
    const { existing, potentialDecodeBlocks, decodeBusy } = service.selectAndReserve(request);
    expect({ existing, potentialDecodeBlocks, decodeBusy }).toEqual({
      ...{ existing: true, potentialDecodeBlocks: first.potentialDecodeBlocks, decodeBusy: first.decodeBusy },
    });
    expect(first.decodeBusy).toBe(true);
  });
});

test("a rank that has gone and comes back is nobody's session any more, and its room is learnt anew", () => {
  const { service } = new SelectionStage().add({ workerId: "a", dataParallelSize: 2, totalKvBlocks: 1_000 });
  for (const dpRank of [0, 1]) {
    const selectionId = `${dpRank}`;
    service.reserve({ selectionId, workerId: "a", dpRank, tokenIds: prompt(8), session: selectionId });
    service.prefillComplete(selectionId);
  }
  service.workers.update("a", { dataParallelSize: 1 });
  expect(service.stats().sessions).toBe(1);
  service.workers.update("a", { dataParallelSize: 2 });
  const decisions = ["0", "1"].map((session) => service.select({ tokenIds: prompt(1), session }).decision);
  expect(decisions[1]).toBe("initialize");
});
