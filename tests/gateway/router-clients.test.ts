import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createRouter, type Router } from "../../src/gateway/router.js";
import { until } from "../support/until.js";
import { type EngineProcess, startEngine } from "./engine-process.js";
import { isIdle, outcomesOf } from "./stage.js";

const model = "fake-model";
const BASE_URL = "http://kvroute/v1";
const LONG = "Tell me of the hanging gardens, please, and of all that grows there. ".repeat(20);
const user = (content: string) => ({ role: "user" as const, content });

let engines: EngineProcess[];
let router: Router;
let client: OpenAI;

beforeAll(async () => {
  const options = { blockSize: 16, decodeSpeedupRatio: 100 };
  engines = await Promise.all([1, 2].map((number) => startEngine({ ...options, name: `e${number}` })));
  router = createRouter({ workers: engines.map(({ url }, index) => ({ id: `e${index + 1}`, url })) });
  client = new OpenAI({ baseURL: BASE_URL, apiKey: "none", maxRetries: 0, fetch: router.fetch });
});
afterAll(() => {
  for (const engine of engines ?? []) engine.kill();
});
afterEach(async () => {
  await until(() => isIdle(router), "the router is idle");
});

const engineOf = (id: string) => /-(e\d)-/.exec(id)?.[1];

/** Waits until no engine has a request. */
async function enginesIdle(): Promise<void> {
  for (const engine of engines) {
    let running = 1;
    while (running > 0) {
      const stats = await engine.stats();
      running = stats.numRunning + stats.numWaiting;
    }
  }
}

describe("the openai client", () => {
  test("chats, and the next turn finds the last one in the cache of its engine", async () => {
    for (let round = 0; round < 4; round++) {
      const messages = [user(`${round}. ${LONG}`)];
      const first = await client.chat.completions.create({ model, messages });
      const answer = { role: "assistant" as const, content: first.choices[0]?.message.content ?? "" };
      const next = await client.chat.completions.create({ model, messages: [...messages, answer, user("And then?")] });
      expect(engineOf(next.id)).toBe(engineOf(first.id));
      expect(next.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(
        (first.usage?.prompt_tokens as number) - 16,
      );
    }
    const used = router.stats().workers.filter(({ outcomes }) => outcomes.completed > 0);
    expect(used).toHaveLength(2);
    expect(outcomesOf(router)).toEqual({ completed: 8 });
  });

  test("streams, and the answer is that of the plain call", async () => {
    const request = { model, messages: [user("The same, twice.")], max_tokens: 5 };
    const whole = await client.chat.completions.create(request);
    const stream = await client.chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage;
    }
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(usage).toMatchObject({ completion_tokens: 5 });
  });

  test("calls functions, streamed and whole", async () => {
    const tools = [{ type: "function" as const, function: { name: "weather", parameters: {} } }];
    const tool_choice = { type: "function" as const, function: { name: "weather" } };
    const request = { model, messages: [user("What is it like outside?")], tools, tool_choice };
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "weather", arguments: "{}" } });
    const final = await client.chat.completions.stream(request).finalChatCompletion();
    expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "weather", arguments: "{}" } });
  });

  test("asks for responses, whole, streamed and continued", async () => {
    const first = await client.responses.create({ model, input: LONG });
    expect(first).toMatchObject({ status: "completed" });
    let last: { id: string } = first;
    for (let turn = 0; turn < 6; turn++) {
      const request = { model, input: `Why ${turn}?`, previous_response_id: last.id }; // only one engine knows it
      if (turn % 2 === 0) last = await client.responses.create(request);
      else
        for await (const event of await client.responses.create({ ...request, stream: true }))
          if ("response" in event) last = event.response;
      expect(last).toMatchObject({ status: "completed", previous_response_id: request.previous_response_id });
    }
    let text = "";
    const types = new Set<string>();
    for await (const event of await client.responses.create({ model, input: LONG, stream: true })) {
      types.add(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    expect(text).toBe(first.output_text);
    expect(types).toContain("response.completed");
  });

  test("completes, embeds and lists models", async () => {
    const completion = await client.completions.create({ model, prompt: "Once upon a time" });
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    const { data } = await client.embeddings.create({ model, input: ["one", "two"], dimensions: 5 });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([5, 5]);
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([model]);
  });

  test("aborts, streamed or not: the engine stops, and nothing stays booked", async () => {
    const endless = { model, messages: [user("Go on.")], max_tokens: 100_000, ignore_eos: true };
    const before = router.stats().outcomes.aborted;
    const stream = await client.chat.completions.create({ ...endless, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break; // leaving the loop aborts
    await enginesIdle();
    for (const streamed of [true, false]) {
      const controller = new AbortController();
      const call = client.chat.completions.create({ ...endless, stream: streamed }, { signal: controller.signal });
      const failure = call.then(async (answer) => {
        for await (const _ of answer as AsyncIterable<unknown>);
      });
      await until(() => router.stats().inFlight === 1, "the request is at an engine");
      controller.abort();
      await Promise.allSettled([failure]);
      expect(router.stats().inFlight).toBe(0);
      await enginesIdle();
    }
    expect(router.stats().outcomes.aborted).toBe(before + 3);
  });

  test("is told of an engine's errors as if it had asked the engine", async () => {
    const before = router.stats().outcomes.rejected;
    const unknown = client.chat.completions.create({ model: "other", messages: [user("?")] });
    await expect(unknown).rejects.toThrow("404 The model `other` does not exist.");
    expect(router.stats().outcomes.rejected).toBe(before + 1);
  });

  test("is told that a stream broke off, in the middle of an event or not", async () => {
    for (const kind of ["die", "truncate"]) {
      const before = router.stats().outcomes.failed;
      const headers = { "x-kvroute-fault": JSON.stringify({ kind, afterEvents: 3 }) };
      const stream = await client.chat.completions.create({ model, messages: [user("x")], stream: true }, { headers });
      let events = 0;
      const reading = async () => {
        for await (const _ of stream) events++;
      };
      await expect(reading()).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_BROKEN" });
      expect(events).toBe(3);
      expect(router.stats().outcomes.failed).toBe(before + 1);
    }
  });
});

describe("the AI SDK", () => {
  const chatModel = () => createOpenAICompatible({ name: "kvroute", baseURL: BASE_URL, fetch: router.fetch })(model);

  test("generates and streams the same text", async () => {
    const request = { prompt: "The same, twice.", maxOutputTokens: 5, maxRetries: 0 };
    const { text, usage } = await generateText({ model: chatModel(), ...request });
    expect(usage.outputTokens).toBe(5);
    let streamed = "";
    for await (const part of streamText({ model: chatModel(), ...request }).textStream) streamed += part;
    expect(streamed).toBe(text);
  });

  test("calls tools and goes on with what they say", async () => {
    const weather = tool({
      inputSchema: jsonSchema<Record<string, never>>({ type: "object", properties: {} }),
      execute: async () => "It rains.",
    });
    const { steps } = await generateText({
      model: chatModel(),
      prompt: "What is it like outside?",
      tools: { weather },
      toolChoice: { type: "tool", toolName: "weather" },
      stopWhen: stepCountIs(2),
      maxRetries: 0,
    });
    expect(steps[0]?.toolResults[0]).toMatchObject({ toolName: "weather", output: "It rains." });
    expect(steps).toHaveLength(2);
  });

  test("stops an engine in the middle of a stream", async () => {
    const before = router.stats().outcomes.aborted;
    const controller = new AbortController();
    const stream = streamText({
      model: chatModel(),
      prompt: "Go on.",
      maxOutputTokens: 100_000,
      providerOptions: { kvroute: { ignore_eos: true } },
      abortSignal: controller.signal,
      maxRetries: 0,
    });
    for await (const _ of stream.textStream) controller.abort();
    await enginesIdle();
    await until(() => router.stats().outcomes.aborted === before + 1, "the request was aborted");
  });
});
