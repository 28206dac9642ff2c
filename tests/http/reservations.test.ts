import { describe, expect, test } from "vitest";
import * as answers from "../../src/http/schemas/answers.js";
import { ApiStage, expectAnswer, expectError, tokens } from "./api-stage.js";

describe("reservations", () => {
  test("book what was selected and pass over all else", async () => {
    const stage = new ApiStage().add({ workerId: 1, endpoint: "http://e" });
    await stage.send("POST", "/select", { token_ids: tokens(3), selection_id: "s" });
    const body = { selection_id: "s", effective_prefill_tokens: 99, dp_rank: 7, token_ids: tokens(9) };
    const reply = await stage.send("POST", "/reservations", body);
    expect(expectAnswer(reply, 201, answers.reservationAnswer)).toEqual({
      selection_id: "s",
      model_name: "default",
      routing_group: "default",
      worker_id: 1,
      dp_rank: 0,
      endpoint: "http://e",
      existing: false,
    });
    expect((await stage.send("POST", "/reservations", { selection_id: "s" })).body.existing).toBe(true);
    expect(stage.loads()).toEqual({ 1: { tokens: 12, blocks: 3, requests: 1 } });
  });

  test("of what was never selected there is nothing to book, 404", async () => {
    const { send } = new ApiStage().add({ workerId: 1 });
    expectError(await send("POST", "/reservations", { selection_id: "s" }), 404, "KVROUTE_UNKNOWN_SELECTION");
    await send("POST", "/select", { token_ids: tokens(1), selection_id: "s" });
    const elsewhere = { selection_id: "s", model_name: "other" };
    expectError(await send("POST", "/reservations", elsewhere), 404, "KVROUTE_UNKNOWN_SELECTION");
  });

  test("book on the worker that the body names, with the prefill that it names", async () => {
    const stage = new ApiStage().add({ workerId: 1 }, { workerId: 2 });
    const body = { selection_id: "s", worker_id: 2, token_ids: tokens(3), effective_prefill_tokens: 12 };
    expectAnswer(await stage.send("POST", "/reservations", body), 201, answers.reservationAnswer);
    const untracked = { selection_id: "u", worker_id: 1, token_ids: tokens(3, 1), track_prefill_tokens: false };
    await stage.send("POST", "/reservations", { ...untracked, expected_output_tokens: 10 });
    expect(stage.loads()).toEqual({
      1: { tokens: 0, blocks: 3, requests: 1 },
      2: { tokens: 12, blocks: 3, requests: 1 },
    });
    const longer = await stage.send("POST", "/reservations", { ...body, expected_output_tokens: 7 });
    expectError(longer, 409, "KVROUTE_BOOKING_CONFLICT");
    const conflict = await stage.send("POST", "/reservations", { ...body, worker_id: 1 });
    expectError(conflict, 409, "KVROUTE_BOOKING_CONFLICT");
    const unknown = await stage.send("POST", "/reservations", { ...body, selection_id: "t", worker_id: "2" });
    expectError(unknown, 404, "KVROUTE_UNKNOWN_WORKER");
    expectError(
      await stage.send("POST", "/reservations", { ...body, selection_id: "t", dp_rank: 1 }),
      404,
      "KVROUTE_UNKNOWN_WORKER",
    );
  });

  test("track prefill as the body says, else as the override in it", async () => {
    const stage = new ApiStage().add({ workerId: 1 });
    const override = { router_config_override: { track_prefill_tokens: false } };
    const ask = { worker_id: 1, token_ids: tokens(1), ...override };
    await stage.send("POST", "/reservations", { selection_id: "a", ...ask });
    expect(stage.loads()[1]?.tokens).toBe(0);
    await stage.send("POST", "/reservations", {
      selection_id: "b",
      ...ask,
      track_prefill_tokens: true,
      token_ids: tokens(1, 1),
    });
    expect(stage.loads()[1]?.tokens).toBe(4);
  });

  test("bind a session that they name", async () => {
    const { send } = new ApiStage().add({ workerId: 1 }, { workerId: 2 });
    await send("POST", "/reservations", {
      selection_id: "s",
      worker_id: 2,
      token_ids: tokens(1),
      session_id: "c",
      tenant: "t",
    });
    await send("POST", "/reservations/s/prefill_complete");
    const { body } = await send("POST", "/select", { token_ids: tokens(1, 4), session_id: "c", tenant: "t" });
    expect(body.session_decision).not.toBe("initialize");
  });

  test("live through prefill, output, signs of life and the report of the engine, and end", async () => {
    const stage = new ApiStage({}, { leaseMs: 100 }).add({ workerId: 1, totalKvBlocks: 10 });
    const { body } = await stage.send("POST", "/select_and_reserve", { token_ids: tokens(2) });
    const path = `/reservations/${body.selection_id}`;
    const step = async (method: string, what: string, sent?: unknown) => {
      stage.clock.ms += 60; // each call renews the lease of 100
      expectAnswer(await stage.send(method, path + what, sent), 200, answers.doneAnswer);
      return stage.loads()[1];
    };
    expect(await step("POST", "/touch")).toEqual({ tokens: 8, blocks: 2, requests: 1 });
    expect(await step("POST", "/prefill_complete")).toEqual({ tokens: 0, blocks: 2, requests: 1 });
    expect(await step("POST", "/prefill_complete", {})).toEqual({ tokens: 0, blocks: 2, requests: 1 });
    expect(await step("POST", "/output_block")).toEqual({ tokens: 0, blocks: 3, requests: 1 });
    expect(await step("POST", "/output_block", { decay_fraction: null })).toEqual({
      tokens: 0,
      blocks: 4,
      requests: 1,
    });
    expect(await step("POST", "/output_block", { decay_fraction: 0.5 })).toEqual({
      tokens: 0,
      blocks: 2.5,
      requests: 1,
    });
    await step("POST", "/cached_tokens", { cached_tokens: 0 });
    expect(stage.service.stats().prediction.reports).toBe(1);
    expect(await step("DELETE", "")).toEqual({ tokens: 0, blocks: 0, requests: 0 });
  });

  test.each([
    ["POST", "/prefill_complete"],
    ["POST", "/output_block"],
    ["POST", "/touch"],
    ["POST", "/cached_tokens"],
    ["DELETE", ""],
  ])("%s %s of what is not booked is a 404", async (method, what) => {
    const { send } = new ApiStage().add({ workerId: 1 });
    const sent = what === "/cached_tokens" ? { cached_tokens: 1 } : undefined;
    expectError(await send(method, `/reservations/s${what}`, sent), 404, "KVROUTE_UNKNOWN_BOOKING");
    await send("POST", "/select_and_reserve", { token_ids: tokens(1), selection_id: "s" });
    await send("DELETE", "/reservations/s");
    expectError(await send(method, `/reservations/s${what}`, sent), 404, "KVROUTE_UNKNOWN_BOOKING");
  });
});
