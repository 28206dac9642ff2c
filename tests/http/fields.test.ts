import { describe, expect, test } from "vitest";
import { ApiStage, expectError } from "./api-stage.js";
import { advised, prompts, reservations, selects } from "./field-cases-requests.js";
import { cached, outputs, updates, workers } from "./field-cases-workers.js";
import { ID } from "./field-words.js";

describe.each([
  ["POST", "/select", selects],
  ["POST", "/select_and_reserve", [...selects, advised]],
  ["POST", "/reservations", reservations],
  ["POST", "/potential_loads", prompts],
  ["POST", "/overlap_scores", prompts],
  ["POST", "/workers", workers],
  ["PATCH", "/workers/1", updates],
  ["POST", "/reservations/live/output_block", outputs],
  ["POST", "/reservations/live/cached_tokens", cached],
] as const)("%s %s with a bad value names its path, 400, and changes nothing:", (method, path, cases) => {
  const stage = new ApiStage().add({ workerId: 1 });
  stage.service.reserve({ selectionId: "live", workerId: 1, tokenIds: [1, 2, 3, 4] });
  const state = () => JSON.stringify([stage.service.stats(), stage.service.loads(), stage.service.workers.list()]);
  const before = state();

  test.each(cases.map(([body, sentence]) => [sentence, body] as const))("%s", async (sentence, body) => {
    const reply = await stage.send(method, path, body);
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error.slice(0, sentence.length)).toBe(sentence);
    expect(reply.body.error.length).toBeLessThan(400);
    expect(state()).toBe(before);
  });

  test.each([
    ["[]", "a list of 0"],
    ["null", "null"],
    ['"x"', 'the string "x"'],
    ["12345678901234567890123", "the number 1.2345678901234568e+22"],
  ])("Expected the body to be an object, got %s", async (raw, got) => {
    const reply = await stage.send(method, path, raw);
    expectError(reply, 400, "KVROUTE_HTTP_FIELD");
    expect(reply.body.error).toBe(`Expected the body to be an object, got ${got}.`);
  });
});

test.each(["18446744073709551616", "99999999999999999999"])("no worker can have the id %s", async (id) => {
  const { send } = new ApiStage();
  const reply = await send("DELETE", `/workers/${id}`);
  expectError(reply, 400, "KVROUTE_HTTP_FIELD");
  expect(reply.body.error).toBe(`Expected worker_id to be ${ID}, got the number ${id}.`);
});
