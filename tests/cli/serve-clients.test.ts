import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { type ServeProcess, startServe } from "./serve-process.js";
import { kvroute } from "./stage.js";

const model = "fake-model";
const TOKEN = "t0ken";
const LONG = "Tell me of the hanging gardens, please, and of all that grows there. ".repeat(20);
const user = (content: string) => ({ role: "user" as const, content });

let server: ServeProcess;
let client: OpenAI;

beforeAll(async () => {
  server = await startServe([], { KVROUTE_CONTROL_TOKEN: TOKEN });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(async () => {
  server.kill("SIGTERM");
  expect(await server.exit).toBe(0);
});

/** Waits until nothing is at a worker. */
async function idle(): Promise<void> {
  let text = "";
  while (!/^kvroute_requests_in_flight 0$/m.test(text)) text = await (await fetch(`${server.url}/metrics`)).text();
}

const aborted = () => server.lines.filter(({ outcome }) => outcome === "aborted").length;

describe("the openai client", () => {
  test("chats, and the next turn finds the last one in the cache of its engine", async () => {
    const messages = [user(LONG)];
    const { data: first, response } = await client.chat.completions.create({ model, messages }).withResponse();
    const answer = { role: "assistant" as const, content: first.choices[0]?.message.content ?? "" };
    const turn = { model, messages: [...messages, answer, user("And then?")] };
    const { data: next, response: again } = await client.chat.completions.create(turn).withResponse();
    expect(again.headers.get("x-kvroute-worker")).toBe(response.headers.get("x-kvroute-worker"));
    expect(again.headers.get("x-kvroute-decision")).toBe("retain");
    expect(Number(again.headers.get("x-kvroute-cached-tokens"))).toBeGreaterThan(200);
    expect(next.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan((first.usage?.prompt_tokens ?? 0) * 0.8);
  });

  test("streams, and the answer is that of the plain call", async () => {
    const request = { model, messages: [user("The same, twice.")], max_tokens: 5 };
    const whole = await client.chat.completions.create(request);
    let text = "";
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(whole.choices[0]?.message.content);
  });

  test("calls functions, streamed and whole", async () => {
    const tools = [{ type: "function" as const, function: { name: "weather", parameters: {} } }];
    const tool_choice = { type: "function" as const, function: { name: "weather" } };
    const request = { model, messages: [user("What is it like outside?")], tools, tool_choice };
    const called = { function: { name: "weather", arguments: "{}" } };
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject(called);
    const final = await client.chat.completions.stream(request).finalChatCompletion();
    expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject(called);
  });

  test("aborts, streamed or not: the engine stops", async () => {
    const endless = { model, messages: [user("Go on.")], max_tokens: 100_000, ignore_eos: true };
    const before = aborted();
    for (const stream of [true, false]) {
      const controller = new AbortController();
      const call = client.chat.completions.create({ ...endless, stream }, { signal: controller.signal });
      const reading = call.then(async (answer) => {
        for await (const _ of answer as AsyncIterable<unknown>) controller.abort();
      });
      let metrics = "";
      while (!/^kvroute_requests_in_flight 1$/m.test(metrics))
        metrics = await (await fetch(`${server.url}/metrics`)).text();
      controller.abort();
      await Promise.allSettled([reading]);
      await idle();
    }
    await until(() => aborted() === before + 2, "both are logged as aborted");
  });

  test("completes, embeds, asks for responses and lists models", async () => {
    expect((await client.completions.create({ model, prompt: "Once" })).choices[0]?.finish_reason).toBe("stop");
    const { data } = await client.embeddings.create({ model, input: ["one", "two"], dimensions: 5 });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([5, 5]);
    expect(await client.responses.create({ model, input: LONG })).toMatchObject({ status: "completed" });
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([model]);
  });

  test("is told of an engine's errors as if it had asked the engine", async () => {
    const unknown = client.chat.completions.create({ model: "other", messages: [user("?")] });
    await expect(unknown).rejects.toThrow("404 The model `other` does not exist.");
  });
});

describe("the AI SDK", () => {
  const chatModel = () => createOpenAICompatible({ name: "kvroute", baseURL: `${server.url}/v1` })(model);

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
    const before = aborted();
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
    await idle();
    await until(() => aborted() === before + 1, "the request was aborted");
  });
});

describe("kvroute explain --server", () => {
  const request = { model, messages: [user(LONG)] };
  const explain = (...argv: string[]) =>
    kvroute(["explain", "-", "--server", server.url, ...argv], { stdin: JSON.stringify(request) });

  test("says what the caches of a server hold, and where it would send a request", async () => {
    const { response } = await client.chat.completions.create(request).withResponse();
    const { code, stdout, stderr } = await explain(
      "--json",
      "--control-token",
      TOKEN,
      "--header",
      "authorization=Bearer none",
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { worker, candidates, decision } = JSON.parse(stdout);
    expect({ worker, decision }).toEqual({ worker: response.headers.get("x-kvroute-worker"), decision: "retain" });
    expect(candidates.find((one: { isChosen: boolean }) => one.isChosen).cachedBlocks).toBeGreaterThan(4);
    expect((await explain("--control-token", TOKEN)).stdout).toContain(`Policy kv sends it to ${worker}.`);
  });

  test.each([
    [[], 2, "Expected --control-token to be that of the server, got none."],
    [["--control-token", "wrong"], 2, "got another."],
    [["--control-token", TOKEN, "--policy", "random"], 2, "Expected --server or --policy, not both"],
    [["--control-token", TOKEN, "--server", "http://user:S3CRET@a"], 2, "without credentials"],
    [["--control-token", TOKEN, "--server", "http://127.0.0.1:1"], 1, "at http://127.0.0.1:1, got none."],
  ])("refuses %j with exit code %i", async (argv, code, message) => {
    const outcome = await explain(...argv);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stderr).not.toMatch(/S3CRET|wrong/);
    expect(outcome.code).toBe(code);
  });

  test("passes on what the server says is wrong", async () => {
    const outcome = await kvroute(["explain", "-", "--server", server.url, "--control-token", TOKEN], { stdin: "{" });
    expect(outcome.stderr).toContain("JSON");
    expect(outcome.code).toBe(1);
  });

  test("takes a key where the server does, and is of its tenant then", async () => {
    const keyed = await startServe(["--api-key", "sk-1"], { KVROUTE_CONTROL_TOKEN: TOKEN });
    const apiKey = new OpenAI({ baseURL: `${keyed.url}/v1`, apiKey: "sk-1", maxRetries: 0 });
    await apiKey.chat.completions.create(request);
    const ask = (...argv: string[]) =>
      kvroute(["explain", "-", "--json", "--server", keyed.url, "--control-token", TOKEN, ...argv], {
        stdin: JSON.stringify(request),
      });
    expect((await ask()).stderr).toContain("Expected an API key of this server");
    const { stdout } = await ask("--header", "authorization=Bearer sk-1");
    expect(JSON.parse(stdout)).toMatchObject({ decision: "retain" });
    keyed.kill("SIGTERM");
    expect(await keyed.exit).toBe(0);
  });

  test("is refused by a server without control, and by what is no kvroute", async () => {
    const plain = await startServe();
    const engine = /^ +embedded-1 +(\S+)$/m.exec(plain.stderr)?.[1] as string;
    const ask = (url: string) =>
      kvroute(["explain", "-", "--server", url, "--control-token", TOKEN], { stdin: JSON.stringify(request) });
    expect((await ask(plain.url)).stderr).toContain("got one of a server without any.");
    expect((await ask(engine)).stderr).toMatch(
      /Expected an answer of the kvroute at .*, got status 404 of something else\./,
    );
    plain.kill("SIGTERM");
    expect(await plain.exit).toBe(0);
  });
});
