import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.js";

/** What clients are put before: a router in this process, or a server. */
export interface Served {
  /** Where clients think they are. */
  readonly baseURL: string;
  readonly fetch?: typeof fetch | undefined;
  /** Counts the requests that are at an engine. */
  inFlight(): Promise<number>;
  /** Counts the requests that their clients gave up. */
  aborted(): number;
  /** Waits until no engine has a request. */
  enginesIdle(): Promise<void>;
}

export const model = "fake-model";
export const LONG = "Tell me of the hanging gardens, please, and of all that grows there. ".repeat(20);
export const user = (content: string) => ({ role: "user" as const, content });

/** Makes the client of OpenAI, which does not try again by itself. */
export function openAiOf({ baseURL, fetch }: Pick<Served, "baseURL" | "fetch">): OpenAI {
  return new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch });
}

/** What the clients that people use do before fake engines, whatever stands between. */
export function clientsContract(served: () => Served): void {
  describe("the openai client", () => {
    let client: OpenAI;
    beforeAll(() => {
      client = openAiOf(served());
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
      expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({
        function: { name: "weather", arguments: "{}" },
      });
      const final = await client.chat.completions.stream(request).finalChatCompletion();
      expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject({
        function: { name: "weather", arguments: "{}" },
      });
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
      const { inFlight, aborted, enginesIdle } = served();
      const endless = { model, messages: [user("Go on.")], max_tokens: 100_000, ignore_eos: true };
      const before = aborted();
      const stream = await client.chat.completions.create({ ...endless, stream: true });
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break; // leaving the loop aborts
      await enginesIdle();
      for (const streamed of [true, false]) {
        const controller = new AbortController();
        const call = client.chat.completions.create({ ...endless, stream: streamed }, { signal: controller.signal });
        const failure = call.then(async (answer) => {
          for await (const _ of answer as AsyncIterable<unknown>);
        });
        while ((await inFlight()) !== 1);
        controller.abort();
        await Promise.allSettled([failure]);
        while ((await inFlight()) !== 0);
        await enginesIdle();
      }
      await until(() => aborted() === before + 3, "all three are counted as aborted");
    });

    test("is told of an engine's errors as if it had asked the engine", async () => {
      const unknown = client.chat.completions.create({ model: "other", messages: [user("?")] });
      await expect(unknown).rejects.toThrow("404 The model `other` does not exist.");
    });
  });

  describe("the AI SDK", () => {
    const chatModel = () => {
      const { baseURL, fetch } = served();
      return createOpenAICompatible({ name: "kvroute", baseURL, ...(fetch && { fetch }) })(model);
    };

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
      const { aborted, enginesIdle } = served();
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
      await enginesIdle();
      await until(() => aborted() === before + 1, "the request was aborted");
    });
  });
}
