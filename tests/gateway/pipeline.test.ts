import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, DONE, handStage, isIdle, outcomesOf, token } from "./stage.js";

const workers = [
  { id: "a", url: "http://a" },
  { id: "b", url: "http://b" },
];
const usageOf = (prompt_tokens: number, cached_tokens: number) => ({
  ...{ prompt_tokens, completion_tokens: 1, prompt_tokens_details: { cached_tokens } },
});
const LONG = "A prompt that has some blocks. ".repeat(60);

/** Asks, and has the worker answer at once. */
async function ask(
  stage: ReturnType<typeof handStage>,
  request: RequestInit,
  answer: unknown = { choices: [] },
  url = CHAT_URL,
) {
  const index = stage.engine.calls.length;
  const response = stage.router.fetch(url, request);
  const call = await stage.engine.call(index);
  call.begin("application/json").send(JSON.stringify(answer)).end();
  await (await response).text();
  return call;
}

describe("a request goes", () => {
  test("where its prefix is, to the worker that had the turn before", async () => {
    for (const first of ["a", "b"]) {
      const stage = handStage({ workers: first === "a" ? workers : [...workers].reverse() });
      const one = await ask(stage, chat(LONG));
      for (let turn = 0; turn < 4; turn++) {
        expect((await ask(stage, chat(LONG, { turn }))).url).toBe(one.url);
        await ask(stage, chat(`Something else, ${turn}. ${LONG}`));
      }
    }
  });

  test("elsewhere, when it has nothing to do with what went before: all workers get their part", async () => {
    const stage = handStage({ workers });
    const counts: Record<string, number> = {};
    for (let index = 0; index < 40; index++) {
      const { url } = await ask(stage, chat(`${index} ${LONG}`));
      counts[url] = (counts[url] ?? 0) + 1;
    }
    expect(Object.values(counts).every((count) => count >= 15)).toBe(true);
    expect(isIdle(stage.router)).toBe(true);
  });

  test("by load alone where its path is not known, with its query, method and body", async () => {
    const stage = handStage({ workers });
    const url = "http://kvroute/v1/rerank?top=3";
    const first = stage.router.fetch(url, { method: "PUT", body: "not JSON" });
    const call = await stage.engine.call();
    const second = stage.router.fetch(url, { method: "PUT", body: "not JSON" });
    const other = await stage.engine.call(1);
    expect([call.url, other.url].sort()).toEqual(["http://a/v1/rerank?top=3", "http://b/v1/rerank?top=3"]);
    expect([call.init.method, call.body, call.init.headers.get("content-type")]).toEqual([
      "PUT",
      "not JSON",
      "text/plain;charset=UTF-8",
    ]);
    for (const open of [call, other]) open.begin("text/plain").send("ok").end();
    expect([await (await first).text(), await (await second).text()]).toEqual(["ok", "ok"]);
    expect(isIdle(stage.router)).toBe(true);
  });

  test("only to workers that serve its model", async () => {
    const stage = handStage({
      workers: [...workers, { id: "c", url: "http://c", models: ["special", "m2"] }].slice(1),
    });
    expect((await ask(stage, chat("x", { model: "special" }))).url).toMatch(/^http:\/\/[bc]\//);
    stage.router.removeWorker("b");
    expect((await ask(stage, chat("x", { model: "special" }))).url).toMatch(/^http:\/\/c\//);
    const unknown = await stage.router.fetch(CHAT_URL, chat("x", { model: "none" }));
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toMatchObject({
      error: { code: "KVROUTE_GATEWAY_MODEL", type: "invalid_request_error" },
    });
  });

  test("only to workers with room, and to none when all are full", async () => {
    const stage = handStage({ workers: workers.map((worker) => ({ ...worker, maxInFlight: 1 })), maxQueued: 0 });
    const open = [chat(LONG), chat(LONG)].map((request) => stage.router.fetch(CHAT_URL, request));
    const calls = [await stage.engine.call(0), await stage.engine.call(1)];
    expect(new Set(calls.map(({ url }) => url)).size).toBe(2);
    const refused = await stage.router.fetch(CHAT_URL, chat(LONG));
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { code: "KVROUTE_GATEWAY_QUEUE_FULL" } });
    for (const call of calls) call.begin("application/json").send("{}").end();
    for (const response of open) await (await response).text();
    await ask(stage, chat(LONG));
    expect(isIdle(stage.router)).toBe(true);
  });
});

describe("what is sent", () => {
  test("are the caller's bytes, whatever stands in them", async () => {
    const stage = handStage();
    const body = `{ "model":"m","unknown": {"x":1.0e2, "big":12345678901234567890},\n"messages":[{"role":"user","content":"\\u00e9\\/"}] }`;
    const bytes = new TextEncoder().encode(body);
    for (const given of [body, bytes, bytes.buffer, new Blob([bytes]), new Response(bytes).body]) {
      const init = { method: "POST", body: given, duplex: "half" } as RequestInit;
      expect((await ask(stage, init)).body).toBe(body);
    }
    const index = stage.engine.calls.length;
    const response = stage.router.fetch(new Request(CHAT_URL, { method: "POST", body }));
    (await stage.engine.call(index)).begin("application/json").send("{}").end();
    await (await response).text();
    expect(stage.engine.calls.at(-1)?.body).toBe(body);
  });

  test("is read alike from a text and from its bytes, byte order mark and broken characters included", async () => {
    for (const text of [
      chat(`${LONG}\u00e9`).body as string,
      `\ufeff${chat(LONG).body}`,
      chat(`${LONG}\ud800`).body as string,
    ]) {
      const stage = handStage({ workers });
      await ask(stage, { method: "POST", body: text });
      const { blocks } = stage.router.stats().selection.index;
      await ask(stage, { method: "POST", body: new TextEncoder().encode(text) });
      expect(stage.router.stats().selection.index.blocks).toBe(blocks);
      expect(blocks).toBeGreaterThan(5);
    }
  });

  test("are not the bytes that the caller writes afterwards", async () => {
    const stage = handStage();
    const body = new TextEncoder().encode(JSON.stringify({ model: "m", messages: [] }));
    const response = stage.router.fetch(CHAT_URL, { method: "POST", body });
    body.fill(0);
    const call = await stage.engine.call();
    expect(call.body).toBe('{"model":"m","messages":[]}');
    call.begin("application/json").send("{}").end();
    await response;
  });

  test("are the caller's headers, but for those of the connection and those that name sessions", async () => {
    const headers = {
      ...{ authorization: "Bearer key", "x-custom": "kept", "x-request-id": "7", baggage: "session.id=s,other=1" },
      ...{ connection: "x-hop", "x-hop": "1", "accept-encoding": "br", expect: "100-continue", te: "trailers" },
      ...{ "x-claude-code-session-id": "s", "x-session-affinity": "s", session_id: "s" },
    };
    const sent = (await ask(handStage(), { ...chat("x"), headers })).init.headers;
    expect(Object.fromEntries(sent)).toEqual({
      ...{ authorization: "Bearer key", "x-custom": "kept", "x-request-id": "7", baggage: "other=1" },
      "content-type": "text/plain;charset=UTF-8", // as fetch has it where nobody says more
    });
    const forwarded = (await ask(handStage({ forwardAffinityHeaders: true }), { ...chat("x"), headers })).init.headers;
    expect(forwarded.get("x-claude-code-session-id")).toBe("s");
    expect(forwarded.get("baggage")).toBe("session.id=s,other=1");
  });

  test("are the worker's own headers where it has some, and then no credentials of the caller", async () => {
    const stage = handStage({
      workers: [{ id: "a", url: "http://a/base/", headers: { "X-Api-Key": "own", "x-custom": "own" } }],
    });
    const headers = {
      authorization: "Bearer caller",
      cookie: "c=1",
      "api-key": "caller",
      "x-custom": "theirs",
      "x-other": "kept",
    };
    const { init, url } = await ask(stage, { ...chat("x"), headers });
    const { "content-type": _, ...others } = Object.fromEntries(init.headers);
    expect(others).toEqual({ "x-api-key": "own", "x-custom": "own", "x-other": "kept" });
    expect(url).toBe("http://a/base/v1/chat/completions");
  });
});

describe("sessions", () => {
  test("of two tenants with one id are two", async () => {
    const stage = handStage({ workers, policy: "session-pin" });
    const asTenant = (key: string) => ({
      ...chat("x"),
      headers: { authorization: `Bearer ${key}`, "x-session-id": "mine" },
    });
    for (const key of ["A", "B"]) await ask(stage, asTenant(key));
    expect(stage.router.stats().selection.sessions).toBe(2);
    for (const key of ["A", "B", "A"]) await ask(stage, asTenant(key));
    expect(stage.router.stats().selection.sessions).toBe(2);
  });

  test("stay with their worker, named or not", async () => {
    const stage = handStage({ workers, policy: "session-pin" });
    const named = { ...chat("x"), headers: { "x-session-id": "one" } };
    const { url } = await ask(stage, named);
    for (let index = 0; index < 5; index++)
      expect((await ask(stage, { ...named, body: chat(`${index}`).body as string })).url).toBe(url);
  });
});

describe("a response that an engine keeps", () => {
  const URL_OF = "http://kvroute/v1/responses";
  const request = (more: object) => ({ method: "POST", body: JSON.stringify({ model: "m", input: "x", ...more }) });

  test("is continued, read and deleted where it is kept, whatever the load says", async () => {
    const stage = handStage({ workers });
    const { url } = await ask(stage, request({}), { id: "resp_1" }, URL_OF);
    const busy = stage.router.fetch(URL_OF, request({ previous_response_id: "resp_1" }));
    const open = await stage.engine.call(1);
    for (const turn of [1, 2, 3]) {
      const next = await ask(stage, request({ previous_response_id: "resp_1", turn }), { id: `resp_${turn}` }, URL_OF);
      expect(next.url).toBe(url);
    }
    for (const method of ["GET", "DELETE"])
      expect((await ask(stage, { method }, {}, `${URL_OF}/resp_1`)).url).toBe(`${url}/resp_1`);
    const foreign = { ...request({ previous_response_id: "resp_1" }), headers: { authorization: "Bearer other" } };
    expect((await ask(stage, foreign, {}, URL_OF)).url).not.toBe(url); // an id is its tenant's
    open.begin("application/json").send("{}").end();
    await (await busy).text();
  });

  test("is asked for elsewhere when its worker has gone, drains, or went before it was whole", async () => {
    for (const leave of ["remove", "drain", "early"] as const) {
      const stage = handStage({ workers });
      const { engine, router } = stage;
      const response = router.fetch(URL_OF, request({}));
      const call = (await engine.call()).begin("application/json").send('{"id":"resp_1"}');
      const id = call.url.includes("//a/") ? "a" : "b";
      if (leave === "early") router.removeWorker(id);
      call.end();
      await (await response).text();
      if (leave === "remove") router.removeWorker(id);
      if (leave === "drain") await router.drain(id);
      expect((await ask(stage, request({ previous_response_id: "resp_1" }), {}, URL_OF)).url).not.toBe(call.url);
    }
  });

  test("is not asked for elsewhere while its worker is full", async () => {
    const stage = handStage({ workers: workers.map((worker) => ({ ...worker, maxInFlight: 1 })), maxQueued: 0 });
    const { url } = await ask(stage, request({}), { id: "resp_1" }, URL_OF);
    const busy = stage.router.fetch(URL_OF, request({ previous_response_id: "resp_1" }));
    const open = await stage.engine.call(1);
    expect(open.url).toBe(url);
    expect((await stage.router.fetch(URL_OF, request({ previous_response_id: "resp_1" }))).status).toBe(429);
    open.begin("application/json").send("{}").end();
    await (await busy).text();
  });
});

describe("the books follow the answer", () => {
  test("an engine that says that it begins has not computed the prompt yet", async () => {
    const { engine, router } = handStage();
    const load = () => router.stats().workers[0]?.activePrefillTokens;
    const body = JSON.stringify({ model: "m", input: LONG, stream: true });
    const response = router.fetch("http://kvroute/v1/responses", { method: "POST", body });
    const call = (await engine.call()).begin();
    const event = (type: string) => `event: ${type}\ndata: ${JSON.stringify({ type })}\n\n`;
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    call.send(event("response.created"));
    await reader.read();
    expect(load()).toBeGreaterThan(400);
    expect(router.stats().timings.ttft.count).toBe(0);
    call.send(event("response.output_text.delta"));
    await reader.read();
    expect(load()).toBe(0);
    expect(router.stats().timings.ttft.count).toBe(1);
    await reader.cancel();
  });

  test("the prefill ends with the first token of a stream, and output is booked as it comes", async () => {
    const { engine, router } = handStage();
    const load = () => router.stats().workers[0];
    const response = router.fetch(CHAT_URL, chat(LONG, { stream: true }));
    const call = (await engine.call()).begin();
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    expect(load()).toMatchObject({ inFlight: 1, activePrefillTokens: expect.any(Number) });
    expect(load()?.activePrefillTokens).toBeGreaterThan(400);
    const before = load()?.activeBlocks as number;
    call.send(token("first"));
    await reader.read();
    expect(load()).toMatchObject({ activePrefillTokens: 0, activeBlocks: before });
    for (let index = 0; index < 64; index++) {
      call.send(token("on"));
      await reader.read();
    }
    expect(load()?.activeBlocks).toBe(before + 1);
    call.send(token("", "stop"), DONE).end();
    while (!(await reader.read()).done);
    expect(load()).toMatchObject({ inFlight: 0, activePrefillTokens: 0, activeBlocks: 0 });
  });

  test("an engine that counts wildly costs a bounded time", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat(LONG, { stream: true }));
    const usage = { prompt_tokens: 1, completion_tokens: Number.MAX_SAFE_INTEGER };
    const call = (await engine.call()).begin().send(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect(router.stats().workers[0]?.activeBlocks).toBeLessThan(100);
    call.send(DONE).end();
    while (!(await reader.read()).done);
    expect(isIdle(router)).toBe(true);
  });

  test("an error ends no prefill: no speed is learnt from it, and no session", async () => {
    const stage = handStage();
    const response = stage.router.fetch(CHAT_URL, chat(LONG));
    (await stage.engine.call()).begin("application/json", 500).send("{}").end();
    await (await response).text();
    expect(stage.router.stats().selection.sessions).toBe(0);
  });

  test("the length of tokens is learnt from what engines count, and cached tokens are compared with the prediction", async () => {
    const stage = handStage();
    for (let index = 0; index < 40; index++) await ask(stage, chat(`${LONG} ${index}`), { usage: usageOf(930, 928) });
    const { bytesPerToken, selection } = stage.router.stats();
    expect(bytesPerToken["m"]).toBeGreaterThan(1.9);
    expect(bytesPerToken["m"]).toBeLessThan(2.2); // LONG has 1,860 bytes
    expect(selection.prediction.reports).toBe(40);
    expect(selection.prediction.meanErrorTokens).toBeLessThan(100);
  });
});

describe("requests that no worker sees", () => {
  const body = (given: BodyInit) => ({ method: "POST", body: given });
  test.each<[string, string, RequestInit, number, string]>([
    ["a path outside /v1", "http://kvroute/other", {}, 404, "KVROUTE_GATEWAY_PATH"],
    ["a body that is no JSON", CHAT_URL, body("{"), 400, "KVROUTE_BODY_NOT_JSON"],
    ["no body", CHAT_URL, { method: "POST" }, 400, "KVROUTE_BODY_NOT_JSON"],
    ["a long text", CHAT_URL, body("x".repeat(1_001)), 413, "KVROUTE_GATEWAY_BODY_TOO_LARGE"],
    ["a text with long characters", CHAT_URL, body("\u00e9".repeat(501)), 413, "KVROUTE_GATEWAY_BODY_TOO_LARGE"],
    ["a long stream", CHAT_URL, body(new Blob(["x".repeat(1_001)])), 413, "KVROUTE_GATEWAY_BODY_TOO_LARGE"],
  ])("%s is refused with its status and code", async (_, url, init, status, code) => {
    const { engine, router } = handStage({ maxBodyBytes: 1_000 });
    const response = await router.fetch(url, init);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: { code, param: null, message: expect.stringMatching(/^Expected /) },
    });
    expect(engine.calls).toHaveLength(0);
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({});
  });

  test("a body of exactly maxBodyBytes is sent", async () => {
    const { body } = chat("x");
    const { length } = body as string;
    await ask(handStage({ maxBodyBytes: length }), chat("x"));
    const refused = await handStage({ maxBodyBytes: length - 1 }).router.fetch(CHAT_URL, chat("x"));
    expect(refused.status).toBe(413);
  });

  test("are told so in Anthropic's words where they speak them", async () => {
    const { router } = handStage({ workers: [] });
    const response = await router.fetch("http://kvroute/v1/messages", chat("x"));
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
  });

  test("a caller that has gone already, or goes before a worker is chosen, books nothing", async () => {
    const { engine, router } = handStage();
    await expect(router.fetch(CHAT_URL, { ...chat("x"), signal: AbortSignal.abort("gone") })).rejects.toBe("gone");
    const controller = new AbortController();
    const response = router.fetch(CHAT_URL, { ...chat("x"), signal: controller.signal });
    controller.abort("gone");
    await expect(response).rejects.toBe("gone");
    expect(engine.calls).toHaveLength(0);
    expect(outcomesOf(router)).toEqual({});
    expect(isIdle(router)).toBe(true);
  });
});

describe("/v1/models", () => {
  const MODELS_URL = "http://kvroute/v1/models";
  const list = (...ids: string[]) =>
    JSON.stringify({ object: "list", data: ids.map((id) => ({ id, object: "model" })) });

  test("lists each model once, of the workers that answer in time", async () => {
    const clock = new VirtualClock();
    const many = ["a", "b", "c", "d"].map((id) => ({ id, url: `http://${id}` }));
    const { engine, router } = handStage({ workers: many, clock });
    const response = router.fetch(MODELS_URL);
    await engine.call(3);
    engine.calls[0]?.begin("application/json").send(list("m1", "m2")).end();
    engine.calls[1]?.begin("application/json").send(list("m2", "m3")).end();
    engine.calls[2]?.begin("text/html").send("<html>").end();
    await until(() => clock.pending === 1, "three have answered");
    clock.advance(5_000);
    expect(await (await response).json()).toMatchObject({
      object: "list",
      data: [{ id: "m1" }, { id: "m2" }, { id: "m3" }],
    });
    expect(clock.pending).toBe(0);
  });

  test("fails where no worker lists any, and ends with its caller", async () => {
    const { engine, router } = handStage();
    const failing = router.fetch(MODELS_URL);
    (await engine.call()).break();
    expect((await failing).status).toBe(502);
    const controller = new AbortController();
    const aborted = router.fetch(MODELS_URL, { signal: controller.signal });
    await engine.call(1);
    controller.abort("gone");
    await expect(aborted).rejects.toBe("gone");
    expect(engine.calls[1]?.init.signal.aborted).toBe(true);
  });
});

describe("workers come and go", () => {
  test("a drained worker gets nothing more, and drain resolves when it has nothing left", async () => {
    const stage = handStage({ workers });
    const { engine, router } = stage;
    const response = router.fetch(CHAT_URL, chat(LONG, { stream: true }));
    const call = (await engine.call()).begin();
    const id = call.url.includes("//a/") ? "a" : "b";
    let isDrained = false;
    const drained = router.drain(id).then(() => {
      isDrained = true;
    });
    expect((await ask(stage, chat(LONG))).url).not.toBe(call.url);
    await expect(router.drain(id, { signal: AbortSignal.abort("enough") })).rejects.toBe("enough");
    expect(isDrained).toBe(false);
    expect(router.stats().workers.find((worker) => worker.id === id)).toMatchObject({ isDraining: true, inFlight: 1 });
    call.send(DONE).end();
    await (await response).text();
    await drained;
    await router.drain(id === "a" ? "b" : "a");
    expect((await router.fetch(CHAT_URL, chat(LONG))).status).toBe(503);
  });

  test("a removed worker gets nothing more, its requests go on, and it comes back empty", async () => {
    const stage = handStage({ workers });
    const { engine, router } = stage;
    const response = router.fetch(CHAT_URL, chat(LONG, { stream: true }));
    const call = (await engine.call()).begin();
    const [id, other] = call.url.includes("//a/") ? ["a", "b"] : ["b", "a"];
    router.removeWorker(id as string);
    expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 0 } });
    for (let index = 0; index < 3; index++) expect((await ask(stage, chat(LONG))).url).toContain(`//${other}/`);
    router.addWorker({ id: id as string, url: `http://${id}` });
    expect((await ask(stage, chat(LONG))).url).toContain(`//${other}/`);
    call.send(token("still", "stop"), DONE).end();
    expect(await (await response).text()).toContain("still");
    expect(isIdle(router)).toBe(true);
    expect(() => router.removeWorker("none")).toThrow(/none/);
  });

  test("a closed router takes nothing more and resolves when all has ended, by itself or by a signal", async () => {
    for (const abrupt of [false, true]) {
      const { engine, router } = handStage();
      const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
      const call = (await engine.call()).begin();
      const reading = (await response).text();
      const controller = new AbortController();
      const closed = Promise.all([router.close({ signal: controller.signal }), router.close()]);
      expect((await router.fetch(CHAT_URL, chat("x"))).status).toBe(503);
      if (abrupt) controller.abort();
      else call.send(token("Hi", "stop"), DONE).end();
      await closed;
      await router.close();
      expect(await reading).toContain(abrupt ? "KVROUTE_GATEWAY_CLOSED" : "Hi");
      expect(isIdle(router)).toBe(true);
    }
  });
});

describe("a handler", () => {
  test("answers a request, and asks the runtime to wait until its booking has ended", async () => {
    const { engine, router } = handStage();
    const waiting: Promise<unknown>[] = [];
    const context = { waitUntil: (promise: Promise<unknown>) => void waiting.push(promise) };
    const response = router.handler(new Request(CHAT_URL, chat("x", { stream: true })), context);
    const call = (await engine.call()).begin();
    expect(waiting).toHaveLength(1);
    call.send(token("Hi", "stop"), DONE).end();
    expect(await (await response).text()).toContain("Hi");
    await Promise.all(waiting);
    expect(isIdle(router)).toBe(true);
  });

  test("gives 499 to nobody when its client has gone", async () => {
    const { engine, router } = handStage();
    const controller = new AbortController();
    const response = router.handler(new Request(CHAT_URL, { ...chat("x"), signal: controller.signal }));
    await engine.call();
    controller.abort();
    expect((await response).status).toBe(499);
    expect(outcomesOf(router)).toEqual({ aborted: 1 });
  });
});

test("a client that does not read slows the engine: nothing is fetched ahead", async () => {
  const { engine, router } = handStage();
  const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
  const call = (await engine.call()).begin();
  const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
  for (const word of ["one", "two", "three"]) {
    call.send(token(word));
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(token(word)); // before the engine sends the next
  }
  await reader.cancel();
  expect(call.isCancelled).toBe(true);
});
