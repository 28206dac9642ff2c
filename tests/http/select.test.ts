import { describe, expect, test } from "vitest";
import * as answers from "../../src/http/schemas/answers.js";
import type { Policy } from "../../src/selection/policy.js";
import { ApiStage, expectAnswer, expectError, hashes, tokens } from "./api-stage.js";

describe("select", () => {
  test("answers with worker, overlap in tokens and load, and books nothing", async () => {
    const stage = new ApiStage().add({ workerId: 1, endpoint: "http://e" });
    const reply = await stage.send("POST", "/select", { token_ids: tokens(3) });
    expect(expectAnswer(reply, 200, answers.selectAnswer)).toEqual({
      model_name: "default",
      routing_group: "default",
      worker_id: 1,
      dp_rank: 0,
      endpoint: "http://e",
      block_size: 4,
      overlap: { longest_matched: 0, gpu: 0, dp: { "0": 0 }, cpu: 0, disk: 0 },
      effective_prefill_tokens: 12,
      potential_decode_blocks: 3,
    });
    expect(stage.service.stats()).toMatchObject({ bookings: 0, pendingSelections: 0 });
  });

  test("finds what a worker holds, on the rank that holds it", async () => {
    const { send } = new ApiStage().add({ workerId: 1, dataParallelStartRank: 5, dataParallelSize: 2 });
    await send("POST", "/reservations", { selection_id: "s", worker_id: 1, dp_rank: 6, token_ids: tokens(2) });
    const { body } = await send("POST", "/select", { token_ids: [...tokens(2), 1, 2, 3] });
    expect(body).toMatchObject({ worker_id: 1, dp_rank: 6, effective_prefill_tokens: 3 });
    expect(body.overlap).toEqual({ longest_matched: 8, gpu: 8, dp: { "6": 8 }, cpu: 8, disk: 8 });
  });

  test("takes hashes in the place of tokens, signed as Dynamo writes them", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    await send("POST", "/reservations", { selection_id: "s", worker_id: 1, token_ids: tokens(3) });
    const body = { sequence_hashes: hashes(3), block_hashes: [1, 2, 3], isl_tokens: 13 };
    expect((await send("POST", "/select", body)).body).toMatchObject({
      overlap: { gpu: 12 },
      effective_prefill_tokens: 1,
    });
  });

  test("takes the routing tokens of a prompt with images where no image is in them", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const info = { routing_token_ids: tokens(2), block_mm_infos: [null, null] };
    const { body } = await send("POST", "/select", { token_ids: tokens(5), mm_routing_info: info });
    expect(body.effective_prefill_tokens).toBe(8);
    const empty = { routing_token_ids: [], block_mm_infos: [] };
    const second = await send("POST", "/select", {
      token_ids: tokens(5),
      mm_routing_info: empty,
      block_mm_infos: null,
    });
    expect(second.body.effective_prefill_tokens).toBe(20);
  });

  test.each([
    ["a pin", { pinned_worker: { worker_id: 2, dp_rank: 1 } }],
    ["a pin on any rank", { pinned_worker: { worker_id: 2, dp_rank: null }, allowed_worker_ids: null }],
    ["an allow-list", { allowed_worker_ids: [2, "nobody"] }],
    ["a required taint", { routing_constraints: { required_taints: ["t"] } }],
    ["a preferred taint", { routing_constraints: { preferred_taints: { t: 1e3, other: -1 } } }],
  ])("keeps to %s", async (_, constraint) => {
    const { send } = new ApiStage().add(
      { workerId: 1 },
      { workerId: 2, taints: ["t"], dataParallelStartRank: 1 },
      { workerId: 3 },
    );
    const { body } = await send("POST", "/select", { token_ids: tokens(2), ...constraint });
    expect(body).toMatchObject({ worker_id: 2, dp_rank: 1 });
  });

  test("says that nobody may serve it, 503, or that all are busy, 429", async () => {
    const { send } = new ApiStage({}, { busy: { activeRequests: 0 } }).add({ workerId: 1 });
    const ask = { token_ids: tokens(1) };
    expectError(await send("POST", "/select", { ...ask, model_name: "none" }), 503, "KVROUTE_NO_WORKER");
    expectError(await send("POST", "/select", { ...ask, allowed_worker_ids: [9] }), 503, "KVROUTE_NO_WORKER");
    await send("POST", "/reservations", { selection_id: "s", worker_id: 1, ...ask });
    expectError(await send("POST", "/select", ask), 429, "KVROUTE_WORKERS_BUSY");
  });

  test("as advice it says what the worker has to do", async () => {
    const { send } = new ApiStage().add({ workerId: 1, maxNumBatchedTokens: 100, totalKvBlocks: 50 });
    await send("POST", "/reservations", { selection_id: "s", worker_id: 1, token_ids: tokens(2) });
    const reply = await send("POST", "/select", { token_ids: tokens(1, 7), advisory: true });
    expect(expectAnswer(reply, 200, answers.selectAnswer).worker_load).toEqual({
      active_prefill_tokens: 8,
      prefill_token_capacity: 100,
      total_kv_blocks: 50,
    });
  });

  test("says whether decoding would be above its threshold", async () => {
    const { send } = new ApiStage({}, { busy: { kvUsage: 0.5 } }).add({ workerId: 1, totalKvBlocks: 4 });
    expect((await send("POST", "/select", { token_ids: tokens(2) })).body.decode_busy).toBe(false);
    expect((await send("POST", "/select", { token_ids: tokens(3) })).body.decode_busy).toBe(true);
  });

  test("keeps a session with its worker, and the sessions of tenants apart", async () => {
    const { send } = new ApiStage().add({ workerId: 1 }, { workerId: 2 });
    const context = { session_id: "c", parent_session_id: null, session_final: false, input_trigger: "tool_result" };
    const booked = await send("POST", "/select_and_reserve", { token_ids: tokens(2), session_context: context });
    expect(booked.body.session_decision).toBe("initialize");
    await send("POST", `/reservations/${booked.body.selection_id}/prefill_complete`);
    const named = { session_id: "other", session_context: context };
    const again = await send("POST", "/select", { token_ids: tokens(3), ...named });
    expect(again.body).toMatchObject({ session_decision: "retain", worker_id: booked.body.worker_id });
    const other = await send("POST", "/select", { token_ids: tokens(3), session_id: "c", tenant: "t" });
    expect(other.body.session_decision).toBe("initialize");
  });

  test("keeps apart what adapters, salts and groups keep apart", async () => {
    const stage = new ApiStage().add({ workerId: 1 }, { workerId: 2, routingGroup: "g" });
    const ask = { token_ids: tokens(2) };
    await stage.send("POST", "/select_and_reserve", { ...ask, lora_name: "l", cache_salt: "s" });
    const held = async (more: object) => (await stage.send("POST", "/select", { ...ask, ...more })).body.overlap.gpu;
    expect(await held({ lora_name: "l", cache_salt: "s" })).toBe(8);
    expect(await held({ lora_name: "l" })).toBe(0);
    expect(await held({ cache_salt: "s" })).toBe(0);
    expect((await stage.send("POST", "/select", { ...ask, routing_group: "g" })).body.worker_id).toBe(2);
  });

  test("passes an affinity key on", async () => {
    const keys: unknown[] = [];
    const policy: Policy = {
      name: "spy",
      choose: (_, { affinityKey }) => {
        keys.push(affinityKey);
        return { index: 0 };
      },
    };
    const { send } = new ApiStage({}, { policy }).add({ workerId: 1 });
    await send("POST", "/select", { token_ids: [1], affinity_key: "k" });
    expect(keys).toEqual(["k"]);
  });

  test("takes hashes where the list of tokens is empty, and no tokens at all where there are no hashes", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const hashed = { token_ids: [], sequence_hashes: hashes(2), isl_tokens: 9 };
    expect((await send("POST", "/select", hashed)).body.effective_prefill_tokens).toBe(9);
    expect((await send("POST", "/select", { token_ids: [] })).body.effective_prefill_tokens).toBe(0);
  });

  test("counts blocks whole", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    await send("POST", "/select_and_reserve", { token_ids: tokens(2), selection_id: "s" });
    await send("POST", "/reservations/s/output_block", { decay_fraction: 0.25 });
    expect((await send("POST", "/select", { token_ids: tokens(1, 5) })).body.potential_decode_blocks).toBe(2);
  });

  test("explains itself when asked", async () => {
    const { send } = new ApiStage().add({ workerId: 1 }, { workerId: "b" });
    const reply = await send("POST", "/select", { token_ids: tokens(2), explain: true, allowed_worker_ids: [1] });
    const { explanation } = expectAnswer(reply, 200, answers.selectAnswer);
    expect(explanation).toMatchObject({
      policy: "kv",
      candidates: [{ worker_id: 1, dp_rank: 0, is_chosen: true, overlap_blocks: 0 }],
      excluded: [{ worker_id: "b", dp_rank: 0, reason: "it is not among the allowed workers" }],
    });
    expect(Object.keys(explanation.candidates[0].terms)).toContain("cost");
  });

  test("passes over a policy class and the places in a queue that is not there", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const body = { token_ids: tokens(1), priority_jump: 2.5, strict_priority: 3, unheard_of: 1 };
    const reply = await send("POST", "/select", body, { "x-dynamo-meta-policy-class": "batch" });
    expectAnswer(reply, 200, answers.selectAnswer);
  });
});

describe("select_and_reserve", () => {
  test("books in one, and says what it booked", async () => {
    const stage = new ApiStage().add({ workerId: 1 });
    const reply = await stage.send("POST", "/select_and_reserve", { token_ids: tokens(3), advisory: false });
    expect(expectAnswer(reply, 200, answers.selectAndReserveAnswer)).toMatchObject({
      selection_id: "made-0",
      sequence_hashes: hashes(3),
      isl_tokens: 12,
      track_prefill_tokens: true,
      existing: false,
    });
    expect(stage.loads()).toEqual({ 1: { tokens: 12, blocks: 3, requests: 1 } });
  });

  test("again is the same booking; for another prompt it is a conflict, 409", async () => {
    const stage = new ApiStage().add({ workerId: 1 });
    const ask = { token_ids: tokens(3), selection_id: "s" };
    await stage.send("POST", "/select_and_reserve", ask);
    expect((await stage.send("POST", "/select_and_reserve", ask)).body).toMatchObject({ existing: true });
    const longer = await stage.send("POST", "/select_and_reserve", { ...ask, expected_output_tokens: 7 });
    expectError(longer, 409, "KVROUTE_BOOKING_CONFLICT");
    const other = await stage.send("POST", "/select_and_reserve", { ...ask, token_ids: tokens(2) });
    expectError(other, 409, "KVROUTE_BOOKING_CONFLICT");
    expect(stage.loads()).toEqual({ 1: { tokens: 12, blocks: 3, requests: 1 } });
  });

  test("prefill is no load where the request says so", async () => {
    const stage = new ApiStage().add({ workerId: 1 });
    const override = { track_prefill_tokens: false, assume_kv_reuse: true, router_temperature: null, unheard_of: 1 };
    const ask = { token_ids: tokens(3), router_config_override: override };
    const { body } = await stage.send("POST", "/select_and_reserve", ask);
    expect(body.track_prefill_tokens).toBe(false);
    expect(stage.loads()).toEqual({ 1: { tokens: 0, blocks: 3, requests: 1 } });
  });

  test("bookings beyond the limit are refused, 429", async () => {
    const { send } = new ApiStage({}, { maxBookings: 1 }).add({ workerId: 1 });
    await send("POST", "/select_and_reserve", { token_ids: tokens(1) });
    expectError(await send("POST", "/select_and_reserve", { token_ids: tokens(1) }), 429, "KVROUTE_BOOKINGS_FULL");
  });
});
