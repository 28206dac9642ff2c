import { describe, expect, test } from "vitest";
import { createRouter } from "../../src/gateway/router.js";
import { createGatewayApi } from "../../src/http/gateway-api.js";
import { metricsText } from "../../src/http/metrics.js";
import * as answers from "../../src/http/schemas/answers.js";
import { explainAnswer, gatewayReadyAnswer } from "../../src/http/schemas/gateway.js";
import { expectAnswer, expectError, hashes, sender, tokens } from "./api-stage.js";
import { GatewayStage, MODEL } from "./gateway-stage.js";

describe("the gateway", () => {
  test("hands what is below /v1 to a worker, and the answer back", async () => {
    const stage = new GatewayStage();
    const reply = await stage.chat();
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ object: "chat.completion", usage: { completion_tokens: 2 } });
    expect(stage.asked).toEqual(["http://a.test/v1/chat/completions"]);
    expect(stage.isIdle).toBe(true);
  });

  test("asks for no token there, and hands credentials on", async () => {
    const stage = new GatewayStage();
    const messages = [{ role: "user", content: "?" }];
    const headers = { authorization: "Bearer of-the-engine" };
    const reply = await stage.send("POST", "/v1/chat/completions", { model: MODEL, messages }, headers);
    expect(reply.status).toBe(200);
    expect(stage.engine.calls[0]?.headers.get("authorization")).toBe("Bearer of-the-engine");
  });

  test("streams as the engine does", async () => {
    const reply = await new GatewayStage().api.fetch(
      new Request("http://gateway.test/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "?" }], stream: true }),
      }),
    );
    expect(reply.headers.get("content-type")).toContain("text/event-stream");
    expect(await reply.text()).toMatch(/^data: .*\n\ndata: \[DONE\]\n\n$/s);
  });

  test("lists models, and passes paths on that it does not know", async () => {
    const stage = new GatewayStage();
    expect((await stage.send("GET", "/v1/models")).body.data).toMatchObject([{ id: MODEL }]);
    expect((await stage.send("POST", "/v1/rerank", {})).status).toBe(404); // the engine knows no such path
    expect(stage.asked.at(-1)).toBe("http://a.test/v1/rerank");
  });

  test("answers in the envelope of the protocol where nobody can", async () => {
    const stage = new GatewayStage({}, { workers: [] });
    expect(await stage.chat()).toMatchObject({ status: 503, body: { error: { code: "KVROUTE_NO_WORKER" } } });
  });

  test("is a 500 that tells nothing where something breaks that it does not know, and is told to onError", async () => {
    const stage = new GatewayStage();
    const secret = new Error("the password is swordfish");
    const broken = { ...stage.router, handler: () => Promise.reject(secret) };
    const api = createGatewayApi({ router: broken, onError: (error) => stage.errors.push(error) });
    const send = sender((request) => api.fetch(request), "http://gateway.test");
    const reply = await send("POST", "/v1/messages", {});
    expect(reply).toMatchObject({ status: 500, body: { type: "error", error: { type: "api_error" } } });
    expect(reply.text).not.toContain("swordfish");
    expect(stage.errors).toEqual([secret]);
  });

  test("keeps the runtime awake where it has to be asked", async () => {
    const { api, isIdle } = new GatewayStage();
    const kept: Promise<unknown>[] = [];
    const body = JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "?" }] });
    const headers = { "content-type": "application/json" };
    const request = new Request("http://gateway.test/v1/chat/completions", { method: "POST", headers, body });
    await (await api.fetch(request, {}, { waitUntil: (promise: Promise<unknown>) => kept.push(promise) })).text();
    expect(kept.length).toBeGreaterThan(0);
    await Promise.all(kept);
    expect(isIdle).toBe(true);
  });
});

describe("beside it", () => {
  test("/health says that it lives, whatever becomes of the workers", async () => {
    const { send, router } = new GatewayStage({ controlToken: undefined }, { workers: [] });
    expectAnswer(await send("GET", "/health"), 200, answers.doneAnswer);
    await router.close();
    expectAnswer(await send("GET", "/health"), 200, answers.doneAnswer);
  });

  test("/ready says no more than whether a request could be served: not without workers, not with draining ones, not closed", async () => {
    const { send, router } = new GatewayStage({ controlToken: undefined }, { workers: [] });
    const ready = async (status: number) => expectAnswer(await send("GET", "/ready"), status, gatewayReadyAnswer).ready;
    expect(await ready(503)).toBe(false);
    router.addWorker({ id: "b", url: "http://b.test" });
    expect(await ready(200)).toBe(true);
    await router.drain("b");
    expect(await ready(503)).toBe(false);
    router.addWorker({ id: "c", url: "http://c.test" });
    expect(await ready(200)).toBe(true);
    await router.close();
    expect(await ready(503)).toBe(false);
  });

  test("/metrics is text of Prometheus, unless nobody is to see it", async () => {
    const get = (stage: GatewayStage, method = "GET") =>
      stage.api.fetch(new Request("http://gateway.test/metrics", { method }));
    const stage = new GatewayStage({ controlToken: undefined });
    const reply = await get(stage);
    expect(reply.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await reply.text()).toBe(metricsText(stage.router.stats()));
    const refused = await get(stage, "POST");
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET"]);
    expect((await get(new GatewayStage({ metrics: false }))).status).toBe(404);
  });

  test("what fails is a 500 that tells nothing, and onError is told, who may fail as well", async () => {
    for (const failure of [new Error("secret"), "secret"]) {
      const told: unknown[] = [];
      const fail = () => {
        throw failure;
      };
      const onError = (error: unknown) => {
        told.push(error);
        fail();
      };
      const { router } = new GatewayStage();
      const api = createGatewayApi({ router: { ...router, stats: fail }, onError });
      const reply = await sender((request) => api.fetch(request), "http://gateway.test")("GET", "/metrics");
      expectError(reply, 500, "KVROUTE_HTTP_INTERNAL");
      expect(reply.text).not.toContain("secret");
      expect(told).toEqual([failure]);
    }
  });

  test("all else is not found", async () => {
    const { send } = new GatewayStage();
    for (const path of ["/", "/v1", "/v2/models", "//v1/models", "/explain/", "/workers/a/b"]) {
      expectError(await send("GET", path), 404, "KVROUTE_HTTP_NOT_FOUND");
    }
  });
});

describe("/explain", () => {
  const asked = (content: string) => ({
    path: "/v1/chat/completions",
    body: { model: MODEL, messages: [{ role: "user", content }] },
  });

  test("says where a request would go, and books nothing", async () => {
    const stage = new GatewayStage();
    const content = "Tell me of the gardens. ".repeat(40);
    await stage.chat(content);
    const before = stage.state();
    const told = expectAnswer(await stage.send("POST", "/explain", asked(content)), 200, explainAnswer);
    expect(told).toMatchObject({ model: MODEL, policy: "kv", worker: "a", excluded: [] });
    expect(told.candidates).toMatchObject([{ worker: "a", isChosen: true, cachedBlocks: told.blocks }]);
    expect(stage.state()).toBe(before);
    expect(stage.asked).toHaveLength(1);
  });

  test("reads headers in any case, and a body that is a text as it is", async () => {
    const { send } = new GatewayStage();
    const { path, body } = asked("?");
    const headers = { "X-Session-Id": "mine" };
    const told = (await send("POST", "/explain", { path, headers, body: JSON.stringify(body) })).body;
    expect(told.session).toEqual({ id: "mine", source: "x-session-id" });
    expect(told).toEqual((await send("POST", "/explain", { path, headers, body })).body);
  });

  test("refuses other paths, and bodies that no engine could read", async () => {
    const { send } = new GatewayStage();
    expectError(await send("POST", "/explain", { path: "/workers" }), 400, "KVROUTE_HTTP_FIELD");
    expectError(await send("POST", "/explain", {}), 400, "KVROUTE_HTTP_FIELD");
    expectError(await send("POST", "/explain", { path: "/v1/completions" }), 400, "KVROUTE_BODY_NOT_JSON");
    expectError(await send("POST", "/explain", { path: "/v1/completions", body: [] }), 400, "KVROUTE_BODY_NOT_OBJECT");
    const nobody = new GatewayStage({}, { workers: [] });
    expectError(await nobody.send("POST", "/explain", asked("?")), 503, "KVROUTE_NO_WORKER");
    const other = new GatewayStage({}, { workers: [{ id: "a", url: "http://a.test", models: ["m"] }] });
    expectError(await other.send("POST", "/explain", asked("?")), 404, "KVROUTE_GATEWAY_MODEL");
  });
});

test("the selection API books beside the gateway, in the same books", async () => {
  const { send, router } = new GatewayStage();
  const prompt = { sequence_hashes: hashes(3), isl_tokens: 192 };
  expect((await send("POST", "/select", { ...prompt, selection_id: "s" })).body).toMatchObject({
    worker_id: "a",
    endpoint: "http://a.test",
    block_size: 64,
  });
  expectAnswer(await send("POST", "/reservations", { selection_id: "s" }), 201, answers.reservationAnswer);
  expect(router.stats()).toMatchObject({ workers: [{ activePrefillTokens: 192 }], selection: { bookings: 1 } });
  expect((await send("GET", "/loads")).body[0].loads).toMatchObject([{ worker_id: "a", active_requests: 1 }]);
  for (const call of ["prefill_complete", "output_block", "touch"])
    expect((await send("POST", `/reservations/s/${call}`)).status).toBe(200);
  expect((await send("POST", "/reservations/s/cached_tokens", { cached_tokens: 0 })).status).toBe(200);
  expect((await send("DELETE", "/reservations/s")).status).toBe(200);
  expect(router.stats().selection.bookings).toBe(0);
  expect((await send("POST", "/select_and_reserve", { token_ids: tokens(100) })).status).toBe(200);
  expect((await send("POST", "/potential_loads", prompt)).body).toHaveLength(1);
  expect((await send("POST", "/overlap_scores", prompt)).body.workers).toMatchObject([{ worker_id: "a" }]);
});

test.each([
  {},
  { router: {} },
  { maxBodyBytes: 0 },
  { controlToken: "" },
  { controlToken: "two words" },
  { metrics: 1 },
])("options like %j are refused", (options) => {
  const router = createRouter({ workers: [] });
  const given = Object.keys(options).length === 0 || "router" in options ? options : { router, ...options };
  expect(() => createGatewayApi(given as never)).toThrow(expect.objectContaining({ code: "KVROUTE_OPTION" }));
});
