import { describe, expect, test } from "vitest";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { hashTokens } from "../../src/core/token-hash.js";
import { KvEventFeed } from "../../src/selection/events.js";
import { FAULT_HEADER, type FakeAnswer } from "../../src/testing/index.js";
import { encodeMessage, encodeText, join, openMessage } from "../../src/testing/tokenizer.js";
import { FakeStage, turn } from "./stage.js";

const CHAT = "/v1/chat/completions";
const chat = (content: string, rest: object = {}) => ({ messages: [{ role: "user", content }], ...rest });
const promptOf = (content: string) => join([encodeMessage("user", [content]), openMessage("assistant")]);

describe("time", () => {
  test("a stream brings each token when the engine has it", async () => {
    const stage = new FakeStage();
    const response = await stage.settle(stage.post(CHAT, chat("abcdefgh", { stream: true, max_tokens: 3 })));
    const chunks = await stage.chunks(response);
    const prefillMs = promptOf("abcdefgh").length;
    const first = 5_000 + prefillMs;
    const contents = chunks.filter(({ text }) => /"content":" /.test(text));
    expect(contents.map(({ atMs }) => atMs)).toEqual([first, first + 10, first + 20]);
    expect(chunks.at(-1)?.text).toBe("data: [DONE]\n\n");
    expect(chunks[0]?.text).toContain('"created":5');
  });

  test("what is cached is not computed again", async () => {
    const stage = new FakeStage();
    const times: number[] = [];
    for (let turns = 0; turns < 2; turns++) {
      const startMs = stage.clock.now();
      await stage.json(CHAT, chat("a long enough text", { max_tokens: 1 }));
      times.push(stage.clock.now() - startMs);
    }
    const tokens = promptOf("a long enough text").length;
    expect(times).toEqual([tokens, tokens - 4 * Math.floor((tokens - 1) / 4)]);
  });
});

describe("answers", () => {
  test("are what the option says, in the client's protocol, cut off by its limit", async () => {
    const answer = (): FakeAnswer => "Grüße, 世界!"; // 16 bytes: characters lie across tokens
    const stage = new FakeStage({ answer });
    expect(await stage.json(CHAT, chat("x"))).toMatchObject({
      choices: [{ message: { content: "Grüße, 世界!" }, finish_reason: "stop" }],
      usage: { completion_tokens: Math.ceil(new TextEncoder().encode("Grüße, 世界!").length / 4) },
    });
    expect(await stage.json("/v1/completions", { prompt: "x", max_tokens: 1 })).toMatchObject({
      choices: [{ text: "Grü".slice(0, 3), finish_reason: "length" }],
    });
    expect(await stage.json("/v1/messages", chat("x", { max_tokens: 50 }))).toMatchObject({
      content: [{ type: "text", text: "Grüße, 世界!" }],
      stop_reason: "end_turn",
    });
    const stream = await stage.settle(stage.post(CHAT, chat("x", { stream: true })));
    const texts = (await stage.chunks(stream)).map(({ text }) => /"content":"([^"]*)"/.exec(text)?.[1] ?? "");
    expect(texts.join("")).toBe("Grüße, 世界!");
  });

  test("are as long as the client wants that ignores their end", async () => {
    const stage = new FakeStage({ answer: () => "short" });
    const { usage } = await stage.json(CHAT, chat("x", { max_tokens: 40, ignore_eos: true }));
    expect(usage).toMatchObject({ completion_tokens: 40 });
  });

  test("may call functions, in each protocol", async () => {
    const stage = new FakeStage({ answer: () => ({ name: "look", arguments: '{"at":1}' }) });
    expect(await stage.json("/v1/messages", chat("x", { max_tokens: 50 }))).toMatchObject({
      content: [{ type: "tool_use", name: "look", input: { at: 1 } }],
      stop_reason: "tool_use",
    });
    expect(await stage.json("/v1/responses", { input: "x" })).toMatchObject({
      output: [{ type: "function_call", name: "look", arguments: '{"at":1}' }],
    });
  });

  test("Anthropic's streams have their events in order, and count what was cached", async () => {
    const stage = new FakeStage();
    const request = { ...chat("What is there in the cache?"), system: "Be true.", max_tokens: 2 };
    const whole = await stage.json("/v1/messages", request);
    expect(whole).toMatchObject({ type: "message", role: "assistant", stop_reason: "max_tokens" });
    const response = await stage.settle(stage.post("/v1/messages", { ...request, stream: true }));
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const chunks = await stage.chunks(response);
    expect(chunks.map(({ text }) => /^event: (\w+)\n/.exec(text)?.[1])).toEqual([
      ...["message_start", "content_block_start", "ping"],
      ...["content_block_delta", "content_block_delta"],
      ...["content_block_stop", "message_delta", "message_stop"],
    ]);
    const prompt = join([encodeMessage("system", ["Be true."]), promptOf("What is there in the cache?")]).length;
    const cached = 4 * Math.floor((prompt - 1) / 4);
    const { message } = JSON.parse(chunks[0]?.text.split("data: ")[1] as string);
    expect(message.usage).toMatchObject({ input_tokens: prompt - cached, cache_read_input_tokens: cached });
  });
});

describe("requests that cannot be answered", () => {
  test.each([
    [CHAT, "{", 400, "Expected a body that is an object in JSON."],
    [CHAT, [], 400, "Expected a body that is an object in JSON."],
    [CHAT, {}, 400, "Expected messages to be a list of objects."],
    [CHAT, { messages: [] }, 400, "Expected messages to hold at least one message, got none."],
    [CHAT, { messages: [{}] }, 400, "Expected every message to have a role."],
    [CHAT, chat("x", { max_tokens: 0 }), 400, "Expected max_tokens to be a whole number, 1 or more, got 0."],
    [CHAT, chat("x", { n: 2 }), 400, "Expected n to be 1: the engine gives one answer."],
    [CHAT, chat("x", { model: "y" }), 404, "The model `y` does not exist."],
    [CHAT, chat("x".repeat(400)), 400, /^Expected a prompt of at most 80 tokens, .* got 10\d\.$/],
    ["/v1/completions", {}, 400, "Expected prompt to be a string or a list."],
    ["/v1/completions", { prompt: "" }, 400, "Expected prompt to hold at least one token, got none."],
    ["/v1/completions", { prompt: [-1] }, 400, "Expected prompt to hold strings or lists of tokens."],
    ["/v1/embeddings", { input: "x", dimensions: 9_000 }, 400, "Expected dimensions to be at most 8192, got 9000."],
    ["/v1/messages", chat("x"), 400, "Expected max_tokens to be a number of tokens, got none."],
    ["/v1/responses", {}, 400, "Expected input to be a string or a list of items."],
    ["/v1/other", {}, 404, "Expected a path that the engine serves, got /v1/other."],
  ])("%s with %j", async (path, body, status, message) => {
    const stage = new FakeStage({ numGpuBlocks: 20 });
    const response = await stage.settle(stage.post(path, body));
    const { error } = (await response.json()) as { error: { message: string } };
    expect([response.status, error.message]).toEqual([status, expect.stringMatching(message)]);
    expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 0 });
  });

  test("a body is as long as maxBodyBytes at most", async () => {
    const body = JSON.stringify(chat("x"));
    for (const [maxBodyBytes, status] of [
      [body.length, 200],
      [body.length - 1, 413],
    ] as const) {
      const stage = new FakeStage({ maxBodyBytes });
      expect((await stage.settle(stage.post(CHAT, body))).status).toBe(status);
    }
  });

  test("one prompt of a list that is too long takes none of them", async () => {
    const stage = new FakeStage({ numGpuBlocks: 2 });
    const response = await stage.settle(stage.post("/v1/completions", { prompt: ["x", "y".repeat(99)] }));
    expect([response.status, stage.engine.stats().numWaiting]).toEqual([400, 0]);
  });

  test("a full line is 503", async () => {
    const stage = new FakeStage({ maxNumWaiting: 1 });
    const first = stage.post(CHAT, chat("x"));
    await turn();
    expect((await stage.settle(stage.post(CHAT, chat("y")))).status).toBe(503);
    expect((await stage.settle(first)).status).toBe(200);
  });
});

describe("aborts", () => {
  test("a cancelled body, and a signal, free the blocks and leave no timer behind", async () => {
    for (const how of ["cancel", "signal"]) {
      const stage = new FakeStage();
      const controller = new AbortController();
      const body = chat("Go on.", { stream: true, max_tokens: 1_000, ignore_eos: true });
      const response = await stage.settle(stage.post(CHAT, body, { signal: controller.signal }));
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (let chunk = 0; chunk < 3; chunk++) await stage.settle(reader.read());
      expect(stage.engine.stats().numActiveBlocks).toBeGreaterThan(0);
      if (how === "cancel") await reader.cancel();
      else {
        controller.abort(new Error("enough"));
        await expect(reader.read()).rejects.toThrow("enough");
      }
      stage.clock.runAll();
      expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numActiveBlocks: 0, finished: { abort: 1 } });
    }
  });

  test("a signal before the headers rejects the call", async () => {
    const stage = new FakeStage();
    const controller = new AbortController();
    const call = stage.post(CHAT, chat("x"), { signal: controller.signal });
    await turn();
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    stage.clock.runAll();
    expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 0, finished: { abort: 1 } });
    const late = stage.post(CHAT, chat("x"), { signal: controller.signal });
    await expect(late).rejects.toThrow("enough");
  });

  test("an engine that is disposed of breaks everything off, and answers nothing more", async () => {
    const stage = new FakeStage();
    const response = await stage.settle(stage.post(CHAT, chat("x", { stream: true })));
    stage.engine.dispose();
    await expect(response.text()).rejects.toThrow(TypeError);
    await expect(stage.get("/health")).rejects.toThrow(TypeError);
    expect(stage.clock.pending).toBe(0);
  });
});

describe("faults", () => {
  const streamed = chat("x", { stream: true });

  test("refuse is a TypeError, as of fetch, and hang waits for the signal", async () => {
    const stage = new FakeStage({ faults: [{ kind: "refuse" }, { kind: "hang" }] });
    await expect(stage.post(CHAT, streamed)).rejects.toThrow(TypeError);
    const controller = new AbortController();
    const call = stage.post(CHAT, streamed, { signal: controller.signal });
    await turn();
    expect([stage.clock.pending, stage.engine.calls.length, stage.engine.stats().submitted]).toEqual([0, 2, 0]);
    controller.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  test("die breaks off in the middle of an event, and truncate ends in the middle of a character", async () => {
    const stage = new FakeStage({
      faults: [
        { kind: "die", afterEvents: 2 },
        { kind: "truncate", afterEvents: 2 },
      ],
    });
    const dead = await stage.settle(stage.post(CHAT, streamed));
    const reader = (dead.body as ReadableStream<Uint8Array>).getReader();
    const seen: string[] = [];
    const read = async () => {
      for (;;) seen.push(new TextDecoder().decode((await stage.settle(reader.read())).value));
    };
    await expect(read()).rejects.toThrow("The engine died");
    expect(seen.map((text) => text.endsWith("\n\n"))).toEqual([true, true, false]);
    const cut = await stage.settle(stage.post(CHAT, streamed));
    const bytes = new Uint8Array(await stage.settle(cut.arrayBuffer()));
    expect(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes)).toThrow(TypeError);
    expect(new TextDecoder().decode(bytes)).toMatch(/\uFFFD$/);
    stage.clock.runAll();
    expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numActiveBlocks: 0 });
  });

  test("die and truncate spoil a plain answer, too", async () => {
    const stage = new FakeStage({ faults: [{ kind: "die" }, { kind: "truncate" }] });
    const dead = await stage.settle(stage.post(CHAT, chat("x")));
    await expect(stage.settle(dead.text())).rejects.toThrow("The engine died");
    const cut = await stage.settle(stage.post(CHAT, chat("x")));
    expect(await stage.settle(cut.text())).toMatch(/^\{"id":.*\uFFFD$/);
  });

  test("slow delays the headers and every event", async () => {
    const stage = new FakeStage({ faults: [{ kind: "slow", delayMs: 500 }] });
    const response = await stage.settle(stage.post(CHAT, chat("x", { stream: true, max_tokens: 2 })));
    expect(stage.clock.now()).toBe(5_500);
    const chunks = await stage.chunks(response);
    expect(chunks.map(({ atMs }) => atMs)).toEqual([6_000, 6_500, 7_000, 7_500, 8_000]);
  });

  test("status and garbage do not reach the engine or its protocol", async () => {
    const stage = new FakeStage();
    stage.engine.fail({ kind: "status", status: 429, retryAfterSeconds: 3, message: "Later." }, null, {
      kind: "garbage",
    });
    const refused = await stage.settle(stage.post("/v1/messages", chat("x", { max_tokens: 1 })));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "3"]);
    expect(await refused.json()).toEqual({ type: "error", error: { type: "rate_limit_error", message: "Later." } });
    expect((await stage.settle(stage.post(CHAT, chat("x")))).status).toBe(200);
    const garbage = await stage.settle(stage.post(CHAT, chat("x")));
    await expect(stage.settle(garbage.json())).rejects.toThrow(SyntaxError);
    expect(stage.engine.stats().numActiveBlocks).toBe(0);
  });

  test("come from a function or a header, and are checked", async () => {
    const stage = new FakeStage({ faults: ({ path }) => (path === CHAT ? { kind: "status", status: 500 } : null) });
    expect((await stage.settle(stage.post(CHAT, chat("x")))).status).toBe(500);
    expect((await stage.settle(stage.post("/v1/completions", { prompt: "x" }))).status).toBe(200);
    const asked = (fault: string) => stage.settle(stage.post(CHAT, chat("x"), { headers: { [FAULT_HEADER]: fault } }));
    expect((await asked('{"kind":"status","status":418}')).status).toBe(418);
    for (const wrong of ["no", "null", '{"kind":"x"}', '{"kind":"status","status":200}', '{"kind":"slow"}']) {
      expect((await asked(wrong)).status).toBe(400);
    }
    expect(() => stage.engine.fail({ kind: "die", afterEvents: -1 })).toThrow("Expected afterEvents of a fault");
  });

  test("a script has maxFaults entries at most", () => {
    const stage = new FakeStage({ maxFaults: 2 });
    stage.engine.fail(null, null);
    expect(() => stage.engine.fail(null)).toThrow("Expected at most 2 faults, got 3.");
  });
});

describe("what an engine tells of itself", () => {
  test("metrics under vLLM's names", async () => {
    const stage = new FakeStage({ numGpuBlocks: 100, models: ['a "model"'] });
    for (let turns = 0; turns < 2; turns++) await stage.json(CHAT, chat("a long enough text", { max_tokens: 2 }));
    const waiting = stage.post(CHAT, chat("y"));
    await turn();
    const text = await (await stage.get("/metrics")).text();
    const value = (name: string) => {
      const line = text.split("\n").find((one) => one.startsWith(`vllm:${name}{model_name="a \\"model\\"",engine="0"`));
      return Number(line?.split(" ").at(-1));
    };
    const prompt = promptOf("a long enough text").length;
    expect({
      running: value("num_requests_running"),
      waiting: value("num_requests_waiting"),
      usage: value("kv_cache_usage_perc"),
      queries: value("prefix_cache_queries_total"),
      hits: value("prefix_cache_hits_total"),
      prompt: value("prompt_tokens_total"),
      generated: value("generation_tokens_total"),
      preempted: value("num_preemptions_total"),
      firsts: value("time_to_first_token_seconds_count"),
      between: value("inter_token_latency_seconds_sum"),
    }).toEqual({
      ...{ running: 0, waiting: 1, usage: 0, queries: 2 * prompt, hits: 4 * Math.floor((prompt - 1) / 4) },
      ...{ prompt: 2 * prompt, generated: 4, preempted: 0, firsts: 2, between: 0.02 },
    });
    expect(text).toContain('finished_reason="length"} 2');
    expect(text).toMatch(/inter_token_latency_seconds_bucket\{.*le="0.01"\} 2\n/);
    expect(text).toMatch(/inter_token_latency_seconds_bucket\{.*le="\+Inf"\} 2\n/);
    await stage.settle(waiting);
  });

  test("health, models with their length, and no other path", async () => {
    const stage = new FakeStage({ maxModelLen: 77 });
    expect((await stage.get("/health")).status).toBe(200);
    expect(await (await stage.get("/v1/models")).json()).toMatchObject({
      data: [{ id: "fake-model", max_model_len: 77 }],
    });
    expect((await stage.get("/v1/none")).status).toBe(404);
    expect((await stage.engine.fetch(`http://engine${CHAT}`, { method: "DELETE" })).status).toBe(405);
  });

  test("KV events that lead an index to what the next request finds", async () => {
    const stage = new FakeStage({ maxKvMessages: 2 });
    const index = new PrefixIndex();
    const feed = new KvEventFeed({ index, blockSize: 4 });
    const worker = { workerId: "w", dpRank: 0 };
    const stop = stage.engine.onKvEvents((message) => feed.apply(worker, message));
    for (const content of ["the first of them", "the second", "the third"]) await stage.json(CHAT, chat(content));
    expect(stage.engine.kvMessages().map(({ seq }) => seq)).toHaveLength(2);
    const last = stage.engine.kvMessages().at(-1)?.seq as number;
    expect(stage.engine.kvMessages(last)).toHaveLength(1);
    stop();
    const { sequence } = hashTokens(promptOf("the second"), { blockSize: 4 });
    expect(index.overlap(sequence)).toEqual([{ worker, blocks: sequence.length }]);
  });

  test("calls as they came, the last ones", async () => {
    const stage = new FakeStage({ maxCalls: 2 });
    for (const content of ["a", "b", "c"]) await stage.json(CHAT, chat(content), { headers: { "x-mine": content } });
    expect(stage.engine.calls.map(({ headers }) => headers.get("x-mine"))).toEqual(["b", "c"]);
    expect(new TextDecoder().decode(stage.engine.calls[0]?.bytes)).toBe(JSON.stringify(chat("b")));
  });

  test("no more responses are kept than maxStoredResponses, and none that the client does not want kept", async () => {
    const stage = new FakeStage({ maxStoredResponses: 1 });
    const ask = (rest: object) => stage.settle(stage.post("/v1/responses", { input: "x", ...rest }));
    const ids: string[] = [];
    for (const store of [true, true, false]) ids.push(((await (await ask({ store })).json()) as { id: string }).id);
    const statuses = [];
    for (const id of [ids[2], ids[0]]) statuses.push((await ask({ previous_response_id: id, store: false })).status);
    statuses.push((await ask({ previous_response_id: ids[1], store: false })).status);
    expect(statuses).toEqual([404, 404, 200]);
  });
});

test.each([
  { maxBodyBytes: -1 },
  { maxCalls: 1.5 },
  { maxKvMessages: Number.NaN },
  { maxFaults: -1 },
  { maxStoredResponses: -1 },
  { outputTokens: 0 },
  { blockSize: 0 },
])("%o is refused by name", (options) => {
  expect(() => new FakeStage(options)).toThrow(`Expected ${Object.keys(options)[0]} to be a whole number from`);
});

test("tokens are four bytes of UTF-8", () => {
  expect([...encodeText("abcde")]).toEqual([0x64636261, 0x65]);
  expect([...encodeText("")]).toEqual([]);
});
