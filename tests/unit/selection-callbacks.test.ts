import { afterEach, describe, expect, test, vi } from "vitest";
import type { Expired, SelectionService, SelectionServiceOptions } from "../../src/selection/service.js";
import { BLOCK, prompt, SelectionStage } from "../support/selection-stage.js";

const code = (name: string, status?: number) => expect.objectContaining({ code: name, status });

/** A stage whose `onExpired` is written after the service is there, as one that calls it again has to be. */
function staged(hear: (expired: Expired, service: SelectionService) => void, options: SelectionServiceOptions = {}) {
  const stage: SelectionStage = new SelectionStage({
    ...options,
    onExpired: (expired) => hear(expired, stage.service),
  });
  return stage;
}

describe("who is told of an ended booking", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("may remove the last other worker: the partition closes once", () => {
    const stage = staged((_, service) => service.workers.get("b") && service.workers.remove("b"), { maxPartitions: 2 });
    const { service } = stage.add("a", "b", { workerId: "c", modelName: "m" });
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    service.workers.remove("a");
    expect(service.workers.size).toBe(1);
    stage.add({ workerId: "d", modelName: "n" });
    expect(() => stage.add({ workerId: "e", modelName: "o" })).toThrow(code("KVROUTE_CATALOG_FULL", 429));
  });

  test("may add the worker again that is just being removed or moved", () => {
    const stage = staged((_, service) => service.workers.add({ workerId: "a", blockSize: BLOCK, weight: 3 }));
    const { service } = stage.add("a");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    service.workers.remove("a");
    expect(service.workers.list()).toEqual([expect.objectContaining({ workerId: "a", weight: 3 })]);
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    service.workers.update("a", { modelName: "m" });
    expect([...service.workers.partitions()].map(({ entries }) => entries.size)).toEqual([1]);
    expect(service.workers.list()).toEqual([expect.objectContaining({ modelName: "default" })]);
  });

  test("sees the worker gone, with all that was known of it", () => {
    const seen: unknown[] = [];
    const stage = staged((_, service) => seen.push(service.workers.get("a"), service.stats().index.entries));
    const { service } = stage.add("a", "b");
    service.reserve({ selectionId: "r", workerId: "a", tokenIds: prompt(2) });
    service.workers.remove("a");
    expect(seen).toEqual([undefined, 0]);
  });

  test("hinders nobody by throwing: it is reported as uncaught, the others are told, and the call goes on", () => {
    const uncaught: (() => void)[] = [];
    vi.stubGlobal("queueMicrotask", (task: () => void) => uncaught.push(task));
    const told: string[] = [];
    const stage = staged(({ selectionId }) => {
      told.push(selectionId);
      throw new Error(`heard of ${selectionId}`);
    });
    const { service, clock } = stage.add("a", "b");
    for (const selectionId of ["r", "s"]) service.reserve({ selectionId, workerId: "a", tokenIds: prompt(2) });
    service.workers.remove("a");
    expect(told).toEqual(["r", "s"]);
    expect(service.stats()).toMatchObject({ workers: 1, bookings: 0, index: { entries: 0 } });
    service.reserve({ selectionId: "t", workerId: "b", tokenIds: prompt(2) });
    clock.ms += 300_001;
    expect(service.select({ tokenIds: prompt(2) }).worker.workerId).toBe("b");
    expect(uncaught.map((task) => expect(task).toThrow(/heard of/))).toHaveLength(3);
  });
});
