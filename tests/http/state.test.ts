import { describe, expect, test } from "vitest";
import * as answers from "../../src/http/schemas/answers.js";
import { ApiStage, expectAnswer, expectError, hashes, tokens } from "./api-stage.js";

describe("what is going on", () => {
  test("/loads says what is booked, in whole blocks", async () => {
    const { send } = new ApiStage().add({ workerId: 1 }, { workerId: "b", modelName: "m" });
    await send("POST", "/select_and_reserve", { token_ids: tokens(2), selection_id: "s" });
    await send("POST", "/reservations/s/output_block", { decay_fraction: 0.25 });
    const row = {
      worker_id: 1,
      dp_rank: 0,
      potential_prefill_tokens: 8,
      potential_decode_blocks: 1,
      active_requests: 1,
    };
    const idle = { dp_rank: 0, potential_prefill_tokens: 0, potential_decode_blocks: 0, active_requests: 0 };
    const pending = { pending_count: 0, pending_isl_tokens: 0 };
    const mine = { model_name: "default", routing_group: "default", loads: [row], ...pending };
    const other = { model_name: "m", routing_group: "default", loads: [{ worker_id: "b", ...idle }], ...pending };
    expect(expectAnswer(await send("GET", "/loads"), 200, answers.loadsAnswer)).toEqual([mine, other]);
    expect((await send("GET", "/loads?model_name=m")).body).toEqual([other]);
    expect((await send("GET", "/loads?routing_group=none")).body).toEqual([]);
  });

  test("/potential_loads says what each worker would have to do", async () => {
    const { send } = new ApiStage().add({ workerId: 1 }, { workerId: 2 });
    await send("POST", "/reservations", { selection_id: "s", worker_id: 1, token_ids: tokens(2) });
    const reply = await send("POST", "/potential_loads", { token_ids: tokens(3) });
    expect(expectAnswer(reply, 200, answers.potentialLoadsAnswer)).toMatchObject([
      { worker_id: 1, potential_prefill_tokens: 8 + 4, potential_decode_blocks: 3, active_requests: 1 },
      { worker_id: 2, potential_prefill_tokens: 12, potential_decode_blocks: 3, active_requests: 0 },
    ]);
    expectError(await send("POST", "/potential_loads", { token_ids: [1], model_name: "x" }), 503, "KVROUTE_NO_WORKER");
  });

  test("/overlap_scores says who holds how much, in the order of ids and ranks", async () => {
    const { send } = new ApiStage().add("b", { workerId: 10 }, { workerId: 9, dataParallelSize: 2 }, "a", "idle");
    const hold = (selection_id: string, worker_id: unknown, dp_rank: number, blocks: number) =>
      send("POST", "/reservations", { selection_id, worker_id, dp_rank, token_ids: tokens(blocks) });
    await Promise.all([
      hold("1", "b", 0, 1),
      hold("2", 10, 0, 2),
      hold("3", 9, 1, 3),
      hold("4", 9, 0, 1),
      hold("5", "a", 0, 2),
    ]);
    const reply = await send("POST", "/overlap_scores", { token_ids: [...tokens(3), 5] });
    const { workers, ...rest } = expectAnswer(reply, 200, answers.overlapScoresAnswer);
    expect(rest).toEqual({
      block_size: 4,
      num_blocks: 3,
      shared_cache: { enabled: false, total_hit_blocks: 0, ranges: [], error: null },
    });
    const rows = workers.map((row: Record<string, unknown>) => [
      row["worker_id"],
      row["dp_rank"],
      row["device_blocks"],
    ]);
    expect(rows).toEqual([
      [9, 0, 1],
      [9, 1, 3],
      [10, 0, 2],
      ["a", 0, 2],
      ["b", 0, 1],
    ]);
    const byHash = await send("POST", "/overlap_scores", { sequence_hashes: hashes(2), isl_tokens: 11 });
    expect(byHash.body.num_blocks).toBe(2);
    expectError(await send("POST", "/overlap_scores", { token_ids: [1], model_name: "x" }), 503, "KVROUTE_NO_WORKER");
  });

  test("/health says that it lives, /ready that somebody can be chosen", async () => {
    const stage = new ApiStage();
    expectAnswer(await stage.send("GET", "/health"), 200, answers.doneAnswer);
    const empty = expectAnswer(await stage.send("GET", "/ready"), 503, answers.readyAnswer);
    expect(empty).toEqual({ ready: false, schedulable_workers: 0, workers: [] });
    stage.add({ workerId: 1, dataParallelSize: 2 }, { workerId: 2, blockSize: 8 });
    const ready = expectAnswer(await stage.send("GET", "/ready"), 200, answers.readyAnswer);
    expect(ready).toMatchObject({ ready: true, schedulable_workers: 1, workers: [{ worker_id: 1 }, { worker_id: 2 }] });
    stage.service.workers.drain(1);
    expectAnswer(await stage.send("GET", "/ready"), 503, answers.readyAnswer);
  });
});
