import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FakeEngineServer, serveFakeEngine } from "../../src/node/testing.js";
import { until } from "../support/until.js";

let engine: FakeEngineServer;
let client: OpenAI;
const model = "fake-model";

beforeAll(async () => {
  engine = await serveFakeEngine({ blockSize: 4, speedupRatio: Number.POSITIVE_INFINITY, loras: ["adapter"] });
  client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => engine.close());

/** Every test must leave the engine idle. */
beforeEach(() => idle());
const idle = () =>
  until(() => {
    const { numRunning, numWaiting, numActiveBlocks } = engine.stats();
    return numRunning + numWaiting + numActiveBlocks === 0;
  }, "the engine is idle");

const user = (content: string) => ({ role: "user" as const, content });

describe("the openai client", () => {
  test("chats, and the next turn finds the last one in the cache", async () => {
    const messages = [user("Tell me of the hanging gardens, please.")];
    const first = await client.chat.completions.create({ model, messages });
    const answer = first.choices[0]?.message.content as string;
    expect(answer).toMatch(/^( [a-z]{3}){16}$/);
    expect(first.choices[0]?.finish_reason).toBe("stop");
    expect(first.usage).toMatchObject({ completion_tokens: 16, prompt_tokens_details: { cached_tokens: 0 } });
    const second = await client.chat.completions.create({
      model,
      messages: [...messages, { role: "assistant", content: answer }, user("And then?")],
    });
    // All full blocks of the first turn's prompt and of its answer, whose last token is never computed.
    const { prompt_tokens, completion_tokens } = first.usage as OpenAI.CompletionUsage;
    const cached = 4 * Math.floor((prompt_tokens + completion_tokens - 1) / 4);
    expect(second.usage?.prompt_tokens_details?.cached_tokens).toBe(cached);
  });

  test("gets the same answer streamed as whole", async () => {
    const request = { model, messages: [user("The same, twice.")], max_tokens: 5 };
    const whole = await client.chat.completions.create(request);
    const stream = await client.chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      whole.choices[0]?.message.content,
    );
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content)).toHaveLength(5);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("length");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 5 } });
  });

  test("calls functions that it is made to call", async () => {
    const tools = ["other", "weather"].map((name) => ({
      type: "function" as const,
      function: { name, parameters: {} },
    }));
    const request = {
      model,
      messages: [user("What is it like outside?")],
      tools,
      tool_choice: { type: "function" as const, function: { name: "weather" } },
    };
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: null, tool_calls: [{ type: "function", function: { name: "weather", arguments: "{}" } }] },
    });
    const final = await client.chat.completions.stream(request).finalChatCompletion();
    expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "weather", arguments: "{}" } });
  });

  test("completes texts, lists of texts and tokens", async () => {
    const one = await client.completions.create({ model, prompt: "Once upon a time" });
    expect(one).toMatchObject({ choices: [{ index: 0, finish_reason: "stop" }], usage: { prompt_tokens: 4 } });
    const many = await client.completions.create({ model, prompt: ["Once upon a time", "there was"], max_tokens: 2 });
    expect(many.choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, "length"],
      [1, "length"],
    ]);
    expect(one.choices[0]?.text.startsWith(many.choices[0]?.text as string)).toBe(true);
    const tokens = await client.completions.create({ model, prompt: [1, 2, 3], max_tokens: 2 });
    expect(tokens.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2 });
    let text = "";
    for await (const chunk of await client.completions.create({ model, prompt: "Once upon a time", stream: true })) {
      text += chunk.choices[0]?.text ?? "";
    }
    expect(text).toBe(one.choices[0]?.text);
  });

  test("asks for responses, and continues them", async () => {
    const first = await client.responses.create({
      model,
      input: "A long enough question, I hope.",
      instructions: "Be brief.",
    });
    expect(first).toMatchObject({ status: "completed", usage: { output_tokens: 16 } });
    expect(first.output_text).toMatch(/^( [a-z]{3}){16}$/);
    const second = await client.responses.create({ model, input: "Why?", previous_response_id: first.id });
    const { input_tokens = 0, output_tokens = 0, input_tokens_details } = second.usage ?? {};
    expect(output_tokens).toBe(16);
    expect(input_tokens_details?.cached_tokens).toBeGreaterThan((first.usage?.input_tokens as number) - 4);
    expect(input_tokens).toBeGreaterThan(first.usage?.total_tokens as number);
    const types: string[] = [];
    let text = "";
    for await (const event of await client.responses.create({
      model,
      input: "Hm?",
      stream: true,
      max_output_tokens: 3,
    })) {
      if (types.at(-1) !== event.type) types.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.incomplete") expect(event.response.output_text ?? text).toBe(text);
    }
    expect(text).toMatch(/^( [a-z]{3}){3}$/);
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.incomplete",
    ]);
    const unknown = client.responses.create({ model, input: "x", previous_response_id: "resp_none" });
    await expect(unknown).rejects.toThrow(OpenAI.NotFoundError);
  });

  test("embeds, in numbers and in base64", async () => {
    const input = ["one", "two", "one"];
    const packed = await client.embeddings.create({ model, input, dimensions: 5 }); // base64 by default
    const plain = await client.embeddings.create({ model, input, dimensions: 5, encoding_format: "float" });
    expect(plain.data.map(({ embedding }) => embedding)).toEqual(packed.data.map(({ embedding }) => [...embedding]));
    const [one, two, again] = plain.data.map(({ embedding }) => embedding) as [number[], number[], number[]];
    expect([one.length, plain.usage.prompt_tokens]).toEqual([5, 3]);
    expect(again).toEqual(one);
    expect(two).not.toEqual(one);
    expect(Math.hypot(...one)).toBeCloseTo(1, 5);
  });

  test("lists models, and is told of one that is not there", async () => {
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual([model, "adapter"]);
    const unknown = client.chat.completions.create({ model: "other", messages: [user("?")] });
    await expect(unknown).rejects.toThrow("404 The model `other` does not exist.");
  });

  test("an adapter shares no blocks with the base model", async () => {
    const messages = [user("Which model is it that answers this question, I wonder?")];
    for (const name of [model, "adapter"]) {
      const { usage } = await client.chat.completions.create({ model: name, messages });
      expect(usage?.prompt_tokens_details?.cached_tokens).toBe(0);
    }
  });
});

describe("an abort", () => {
  const endless = { model, messages: [user("Go on.")], max_tokens: 100_000, ignore_eos: true };

  test("in the middle of a stream ends the request in the engine", async () => {
    const before = engine.stats().finished.abort;
    const stream = await client.chat.completions.create({ ...endless, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break; // leaving the loop aborts
    }
    await idle();
    expect(engine.stats().finished.abort).toBe(before + 1);
  });

  test("by a signal ends it, too, streamed or not", async () => {
    for (const stream of [true, false]) {
      const before = engine.stats();
      const controller = new AbortController();
      const call = client.chat.completions.create({ ...endless, stream }, { signal: controller.signal });
      const failure = call.then(async (answer) => {
        for await (const _ of answer as AsyncIterable<unknown>);
      });
      await until(() => engine.stats().generationTokens > before.generationTokens + 3, "it generates");
      controller.abort();
      await Promise.allSettled([failure]);
      await idle();
      expect(engine.stats().finished.abort).toBe(before.finished.abort + 1);
    }
  });
});

describe("faults over a connection", () => {
  const request = { model, messages: [user("Will it work?")] };
  const withFault = (fault: object) => ({ headers: { "x-kvroute-fault": JSON.stringify(fault) } });

  test("refuse: the connection breaks before an answer", async () => {
    const call = client.chat.completions.create(request, withFault({ kind: "refuse" }));
    await expect(call).rejects.toThrow(OpenAI.APIConnectionError);
  });

  test("429 with Retry-After, and 500", async () => {
    const fault = { kind: "status", status: 429, retryAfterSeconds: 7 };
    const error = await client.chat.completions.create(request, withFault(fault)).catch((it: unknown) => it);
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect((error as InstanceType<typeof OpenAI.RateLimitError>).headers.get("retry-after")).toBe("7");
    const call = client.chat.completions.create(request, withFault({ kind: "status", status: 500 }));
    await expect(call).rejects.toThrow(OpenAI.InternalServerError);
  });

  test("the client's own retries get past a script of failures", async () => {
    engine.fail({ kind: "status", status: 503, retryAfterSeconds: 0 }, { kind: "refuse" });
    const answer = await client.chat.completions.create(request, { maxRetries: 2 });
    expect(answer.choices).toHaveLength(1);
  });

  test("die: the stream breaks in the middle of an event", async () => {
    const fault = withFault({ kind: "die", afterEvents: 3 });
    const stream = await client.chat.completions.create({ ...request, stream: true }, fault);
    let chunks = 0;
    const read = async () => {
      for await (const _ of stream) chunks++;
    };
    await expect(read()).rejects.toThrow();
    expect(chunks).toBe(3);
  });

  test("hang: nothing comes until the client gives up", async () => {
    const controller = new AbortController();
    const call = client.chat.completions.create(request, { ...withFault({ kind: "hang" }), signal: controller.signal });
    const seen = engine.calls.length;
    await until(
      () => engine.calls.length > seen || engine.calls.at(-1)?.headers.has("x-kvroute-fault") === true,
      "it came",
    );
    controller.abort();
    await expect(call).rejects.toThrow(OpenAI.APIUserAbortError);
  });

  test("garbage is none of the protocol's", async () => {
    const call = client.chat.completions.create(request, withFault({ kind: "garbage" }));
    await expect(call).rejects.toThrow(SyntaxError);
  });
});

test("a server that is closed breaks off what is under way, and its port is free", async () => {
  const other = await serveFakeEngine();
  const hanging = fetch(`${other.url}/v1/chat/completions`, {
    method: "POST",
    body: "{}",
    headers: { "x-kvroute-fault": '{"kind":"hang"}' },
  });
  const failure = expect(hanging).rejects.toThrow(TypeError);
  await until(() => other.calls.length === 1, "the call came");
  await other.close();
  await failure;
  await expect(fetch(`${other.url}/health`)).rejects.toThrow(TypeError);
});
