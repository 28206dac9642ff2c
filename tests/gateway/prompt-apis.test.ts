import { describe, expect, test } from "vitest";
import { asChat, asMessages, asResponses, chatKey, keyOf, shared, type Talk } from "./prompt-stage.js";

// Bodies as the clients of the APIs send them, and scenario 44: no form of a conversation goes without a key.

const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const talk: Talk = {
  system: "You are a weather service. Answer in one sentence and never guess.",
  tools: [{ name: "get_weather", description: "Says what the weather is in a city.", schema: weather }],
  turns: [
    {
      user: "What is the weather in Paris?",
      assistant: "",
      calls: [{ name: "get_weather", args: { city: "Paris" }, result: "18 degrees, and it rains." }],
    },
    { user: "And tomorrow?", assistant: "Tomorrow it will be dry and a little warmer.", calls: [] },
    { user: "Thank you. What should I wear?", assistant: "", calls: [] },
  ],
};
const asText = ({ system, turns }: Talk) => ({
  model: "m",
  prompt: turns.reduce((text, { user, assistant }) => `${text}\nUser: ${user}\nAssistant: ${assistant}`, system),
});

describe.each([
  ["/v1/chat/completions", asChat],
  ["/v1/responses", asResponses],
  ["/v1/messages", asMessages],
  ["/v1/completions", asText],
] as const)("a conversation through %s", (path, render) => {
  const key = (turns: number, change: Partial<Talk> = {}) =>
    keyOf(path, render({ ...talk, turns: talk.turns.slice(0, turns), ...change }));

  test("has a key, of which the next turn shares all but the last message", () => {
    expect(key(1).sequenceHashes.length).toBeGreaterThan(5);
    expect(shared(key(1), key(2))).toBe(key(1).sequenceHashes.length);
    expect(shared(key(2), key(3))).toBe(key(2).sequenceHashes.length);
    expect(key(3).sequenceHashes.length).toBeGreaterThan(key(2).sequenceHashes.length);
  });

  test("shares nothing that follows another system prompt", () => {
    expect(shared(key(2), key(2, { system: "Be brief." }))).toBeLessThan(path === "/v1/completions" ? 1 : 20);
    const after = new Set(key(2, { system: "Be brief." }).sequenceHashes);
    expect([...key(2).sequenceHashes.slice(20)].some((hash) => after.has(hash))).toBe(false);
  });
});

test.each([
  ["/v1/chat/completions", asChat],
  ["/v1/responses", asResponses],
  ["/v1/messages", asMessages],
] as const)("tools count in a body of %s", (path, render) => {
  const [withTools, without] = [keyOf(path, render(talk)), keyOf(path, render({ ...talk, tools: [] }))];
  expect(withTools.promptBytes).toBeGreaterThan(without.promptBytes + JSON.stringify(weather).length);
  expect(shared(withTools, without)).toBe(0);
});

describe("chat completions", () => {
  test("a body of an agent: parts, tools with strict, parallel calls, reasoning, a refusal, functions of old", () => {
    const messages = [
      { role: "developer", content: [{ type: "text", text: "Use the tools." }] },
      { role: "user", name: "ann", content: "Weather in Paris and Rome?" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "Two calls.",
        tool_calls: ["Paris", "Rome"].map((city, i) => ({
          id: `call_${i}`,
          type: "function",
          function: { name: "get_weather", arguments: `{"city": "${city}"}` },
        })),
      },
      { role: "tool", tool_call_id: "call_0", content: "dry" },
      { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "wet" }] },
      { role: "assistant", content: null, refusal: "No more." },
      { role: "assistant", content: null, function_call: { name: "old", arguments: "{}" } },
      { role: "function", name: "old", content: "1" },
    ];
    const tools = [{ type: "function", function: { name: "get_weather", parameters: weather, strict: true } }];
    const whole = chatKey(messages, { tools });
    for (let i = 2; i < messages.length; i++) {
      const part = chatKey(messages.slice(0, i), { tools });
      expect(shared(whole, part)).toBe(part.sequenceHashes.length);
      expect(part.fingerprint).toBe(whole.fingerprint);
      expect(part.promptBytes).toBeLessThan(whole.promptBytes);
    }
    // Arguments count by their value: spaces do not stand in the prompt.
    const spaced = JSON.parse(JSON.stringify(messages).replaceAll('\\": \\"', '\\" :  \\"')) as unknown;
    expect(spaced).not.toEqual(messages);
    expect(chatKey(spaced, { tools }).sequenceHashes).toEqual(whole.sequenceHashes);
  });

  test("reasoning goes by either name", () => {
    const said = (fields: object) => chatKey([{ role: "assistant", content: "x", ...fields }]).fingerprint;
    expect(said({ reasoning: "so" })).toBe(said({ reasoning_content: "so" }));
    expect(said({ reasoning: "so" })).not.toBe(said({}));
    expect(said({ reasoning: "" })).toBe(said({}));
  });
});

describe("responses", () => {
  const key = (body: object) => keyOf("/v1/responses", { model: "m", ...body });

  test("a string is the message of a user", () => {
    const chat = chatKey([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello, who are you?" },
    ]);
    expect(key({ instructions: "Be brief.", input: "Hello, who are you?" }).sequenceHashes).toEqual(
      chat.sequenceHashes,
    );
  });

  test("reasoning, text and calls that follow each other are one message of the assistant", () => {
    const input = [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Look it up." }] },
      { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "One moment." }] },
      { type: "function_call", id: "fc_1", call_id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
    ];
    const chat = chatKey([
      {
        role: "assistant",
        reasoning: "Look it up.",
        content: "One moment.",
        tool_calls: [{ id: "call_1", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
      },
    ]);
    expect(key({ input }).fingerprint).toBe(chat.fingerprint);
    const two = [input[1], { ...input[1], id: "msg_2" }];
    expect(key({ input: two }).fingerprint).not.toBe(key({ input: [input[1]] }).fingerprint);
  });

  test("items of other kinds and sealed reasoning count as they stand", () => {
    const items = [
      { type: "item_reference", id: "a" },
      { type: "item_reference", id: "b" },
      { type: "web_search_call", id: "a", status: "completed" },
      { type: "reasoning", summary: [], encrypted_content: "AAAA" },
      { type: "reasoning", summary: [], encrypted_content: "AAAB" },
      { type: "reasoning", summary: ["odd"] },
    ];
    expect(new Set(items.map((item) => key({ input: [item] }).fingerprint)).size).toBe(items.length);
  });

  test("what continues a stored response shares blocks with what continues the same one alone", () => {
    const input = "Go on, and tell me more about the second of these points.";
    const next = (body: object) => key({ input, ...body });
    const whole = next({}).sequenceHashes.length;
    expect(shared(next({}), next({ previous_response_id: null }))).toBe(whole);
    expect(shared(next({}), next({ previous_response_id: "resp_1" }))).toBe(0);
    expect(shared(next({ previous_response_id: "resp_1" }), next({ previous_response_id: "resp_2" }))).toBe(0);
    expect(shared(next({ previous_response_id: "resp_1" }), next({ previous_response_id: "resp_1" }))).toBe(whole);
    expect(shared(next({}), next({ conversation: "conv_1" }))).toBe(0);
    expect(shared(next({}), next({ reasoning: { effort: "high" } }))).toBe(0);
    expect(shared(next({}), next({ reasoning: { summary: "auto" } }))).toBe(whole);
  });
});

describe("messages", () => {
  const key = (body: object) => keyOf("/v1/messages", { model: "m", max_tokens: 100, ...body });
  const messages = [{ role: "user", content: "Fix the failing test in the parser, please." }];

  test("the system prompt is the same as a string and as a block, but for marks of the cache", () => {
    const text = "You are a coding agent.";
    const block = { type: "text", text, cache_control: { type: "ephemeral" } };
    expect(key({ system: [block], messages }).sequenceHashes).toEqual(key({ system: text, messages }).sequenceHashes);
  });

  test("a line for accounts in the system prompt, new in each request, is left out", () => {
    const system = (line: string) => [
      { type: "text", text: `x-anthropic-billing-header: cc_version=2.1; cch=${line};` },
      { type: "text", text: "You are a coding agent." },
    ];
    const [one, two] = [key({ system: system("eb6c6"), messages }), key({ system: system("4e20a"), messages })];
    expect(two.sequenceHashes).toEqual(one.sequenceHashes);
    expect(one.sequenceHashes).toEqual(key({ system: "You are a coding agent.", messages }).sequenceHashes);
  });

  test("a turn of an agent: thinking, a call, its result beside text, marks of the cache that move", () => {
    const cache = { cache_control: { type: "ephemeral" } };
    const turns = (marked: number) => {
      const mark = (at: number) => (at === marked ? cache : {});
      return [
        { role: "user", content: [{ type: "text", text: "Fix the test.", ...mark(0) }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Read first.", signature: "c2ln" },
            { type: "redacted_thinking", data: "AAAA" },
            { type: "text", text: "I read it." },
            { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a.ts" }, ...mark(1) },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", is_error: true, content: "No such file.", ...mark(2) },
            { type: "text", text: "Look in src." },
          ],
        },
      ];
    };
    const tools = [{ name: "read", description: "Reads a file.", input_schema: { type: "object" }, ...cache }];
    const whole = key({ tools, messages: turns(2) });
    for (const marked of [0, 1])
      expect(key({ tools, messages: turns(marked) }).sequenceHashes).toEqual(whole.sequenceHashes);
    for (const length of [1, 2]) {
      const part = key({ tools, messages: turns(0).slice(0, length) });
      expect(shared(part, whole)).toBe(part.sequenceHashes.length);
      expect(part.fingerprint).toBe(whole.fingerprint);
    }
    const fine = JSON.parse(JSON.stringify(turns(2)).replace('"is_error":true', '"is_error":false')) as unknown;
    expect(key({ tools, messages: fine }).sequenceHashes).not.toEqual(whole.sequenceHashes);
  });

  test("results are messages of a tool, and text between and behind them the user's", () => {
    const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: id });
    const text = (content: string) => ({ type: "text", text: content });
    const content = [text("a"), text("b"), result("1"), result("2"), text("c"), text("d")];
    const chat = chatKey([
      { role: "user", content: [text("a"), text("b")] },
      { role: "tool", tool_call_id: "1", content: "1" },
      { role: "tool", tool_call_id: "2", content: "2" },
      { role: "user", content: [text("c"), text("d")] },
    ]);
    expect(key({ messages: [{ role: "user", content }] }).sequenceHashes).toEqual(chat.sequenceHashes);
  });

  test("tools of the provider count as they stand", () => {
    const tools = [
      [{ type: "bash_20250124", name: "bash" }],
      [{ type: "custom", name: "bash" }],
      [{ name: "bash" }],
      [],
    ];
    const keys = tools.map((list) => key({ tools: list, messages }).fingerprint);
    expect(keys[1]).toBe(keys[2]);
    expect(new Set(keys).size).toBe(3);
  });
});
