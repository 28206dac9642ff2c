import { describe, expect, test } from "vitest";
import { MEDIA_BYTES } from "../../src/gateway/prompt/canonical-text.js";
import {
  BODY_COMPLEXITY_MAX,
  BODY_DEPTH_MAX,
  PROMPT_BYTES_MAX,
  type PromptPath,
  promptKeyOf,
} from "../../src/gateway/prompt.js";
import { PROMPT_BLOCKS_MAX } from "../../src/selection/service/prompt.js";
import { bytesOf, chatKey, keyOf, shared } from "./prompt-stage.js";

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const errorOf = (body: string | Uint8Array, parsed?: unknown) => {
  try {
    promptKeyOf("/v1/chat/completions", typeof body === "string" ? bytesOf(body) : body, {
      blockBytes: 16,
      tenant: "",
      parsed,
    });
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("a body that cannot be routed is refused", () => {
  test.each([
    ["", "KVROUTE_BODY_NOT_JSON"],
    ["{", "KVROUTE_BODY_NOT_JSON"],
    ['{"messages":[]}}', "KVROUTE_BODY_NOT_JSON"],
    ["{'model':'m'}", "KVROUTE_BODY_NOT_JSON"],
    ['{"model":"m', "KVROUTE_BODY_NOT_JSON"],
    [Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), "KVROUTE_BODY_NOT_JSON"],
    ["[]", "KVROUTE_BODY_NOT_OBJECT"],
    ["null", "KVROUTE_BODY_NOT_OBJECT"],
    ['"secret"', "KVROUTE_BODY_NOT_OBJECT"],
    ["5", "KVROUTE_BODY_NOT_OBJECT"],
    ['{"model":5}', "KVROUTE_BODY_FIELD"],
    ['{"model":["m"]}', "KVROUTE_BODY_FIELD"],
  ])("%s: %s", (body, code) => {
    const error = errorOf(body);
    expect(error).toMatchObject({ name: "BodyError", code, status: 400 });
    expect((error as Error).message).toMatch(/^Expected .*\.$/);
    expect((error as Error).message).not.toContain("secret");
  });

  test("a body that was parsed before is checked, too", () => {
    expect(errorOf("", [])).toMatchObject({ code: "KVROUTE_BODY_NOT_OBJECT" });
    expect(errorOf("", { model: "m" })).toBeUndefined();
  });

  test("a body of the largest depth passes, and none that is deeper, wherever the levels stand", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(errorOf(`{"messages":${nested(BODY_DEPTH_MAX - 1)}}`)).toBeUndefined();
    expect(errorOf(`{"messages":${nested(BODY_DEPTH_MAX)}}`)).toMatchObject({ code: "KVROUTE_BODY_TOO_COMPLEX" });
    expect(errorOf(`{"unknown":${'{"a":'.repeat(BODY_DEPTH_MAX)}1${"}".repeat(BODY_DEPTH_MAX + 1)}`)).toMatchObject({
      code: "KVROUTE_BODY_TOO_COMPLEX",
    });
    expect(errorOf("[".repeat(5_000_000))).toMatchObject({ code: "KVROUTE_BODY_TOO_COMPLEX", status: 400 });
  });

  test("a body of the most fields, lists and objects passes, and none that has one more", () => {
    const counted = (fields: number) => `{"a":{"b":[${"[],".repeat(fields - 5)}1]}}`;
    expect(errorOf(counted(BODY_COMPLEXITY_MAX))).toBeUndefined();
    expect(errorOf(counted(BODY_COMPLEXITY_MAX + 1))).toMatchObject({ code: "KVROUTE_BODY_TOO_COMPLEX" });
  });

  test("brackets in strings are no levels, behind whatever escapes", () => {
    for (const text of ["[".repeat(1_000), `\\"${"[".repeat(1_000)}`, `\\\\\\"${"{".repeat(1_000)}`]) {
      expect(errorOf(JSON.stringify({ messages: [user(text)], ["[".repeat(300)]: text }))).toBeUndefined();
    }
    expect(errorOf(`{"a":"\\\\","b":${"[".repeat(300)}`)).toMatchObject({ code: "KVROUTE_BODY_TOO_COMPLEX" });
  });

  test("levels in a body that was parsed before end in the same error", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(errorOf("", { messages: [user([{ type: "odd", deep }])] })).toMatchObject({
      code: "KVROUTE_BODY_TOO_COMPLEX",
    });
  });

  test("arguments of a tool that are too deep to parse count as text", () => {
    const call = (args: string) => ({
      role: "assistant",
      tool_calls: [{ id: "1", function: { name: "f", arguments: args } }],
    });
    const [one, two] = [chatKey([call("[".repeat(100_000))]), chatKey([call("[".repeat(100_001))])];
    expect(one.fingerprint).not.toBe(two.fingerprint);
    expect(one.promptBytes).toBeGreaterThan(100_000);
  });

  test("arguments of all calls together are parsed up to the same limit, and count as text beyond", () => {
    const args = (space: string) => `{"a":${space}[${"[],".repeat(BODY_COMPLEXITY_MAX / 2)}1]}`;
    const call = (space: string) => ({ function: { name: "f", arguments: args(space) } });
    const bytes = (spaces: string[]) => chatKey([{ role: "assistant", tool_calls: spaces.map(call) }]).promptBytes;
    expect(bytes([" ", ""])).toBe(bytes(["", ""]));
    expect(bytes(["", " "])).toBe(bytes(["", ""]) + 1);
  });

  test("of what an API does not allow, the engine says so: it has a key", () => {
    const odd = [
      undefined,
      null,
      5,
      "text",
      {},
      { a: 1 },
      [5],
      [null],
      [[]],
      [{}],
      [{ role: 5 }],
      [user(5)],
      [user([5, null])],
    ];
    const paths: [PromptPath, string][] = [
      ["/v1/chat/completions", "messages"],
      ["/v1/responses", "input"],
      ["/v1/messages", "messages"],
      ["/v1/completions", "prompt"],
      ["/v1/embeddings", "input"],
    ];
    for (const [path, field] of paths) {
      for (const value of odd) expect(keyOf(path, { model: "m", [field]: value }).model).toBe("m");
      for (const name of ["tools", "system", "instructions", "suffix", "reasoning", "documents", "functions"]) {
        for (const value of odd) expect(keyOf(path, { [field]: "x", [name]: value }).model).toBe("");
      }
    }
  });

  test("blockBytes out of range is refused", () => {
    for (const blockBytes of [0, 3, 16_385, 1.5, Number.NaN]) {
      expect(() => chatKey([user("x")], {}, blockBytes)).toThrow(
        expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }),
      );
    }
  });
});

describe("a key says", () => {
  test("the model, whether an answer streams, and how long it may be", () => {
    expect(chatKey([], { stream: true, max_tokens: 5 })).toMatchObject({
      model: "m",
      stream: true,
      maxOutputTokens: 5,
    });
    expect(chatKey([], { stream: "yes", max_tokens: 5, max_completion_tokens: 7 })).toMatchObject({
      stream: false,
      maxOutputTokens: 7,
    });
    expect(keyOf("/v1/responses", { model: "m", max_output_tokens: 9 }).maxOutputTokens).toBe(9);
    for (const odd of [0, -1, 1.5, "5", null]) expect(chatKey([], { max_tokens: odd }).maxOutputTokens).toBeUndefined();
  });

  test("the body as it was parsed, with the fields that nobody knows", () => {
    const body = { model: "m", messages: [user("x")], unknown: { kept: [1] } };
    expect(keyOf("/v1/chat/completions", body).parsed).toEqual(body);
    expect(promptKeyOf("/v1/chat/completions", bytesOf(""), { blockBytes: 16, tenant: "", parsed: body }).parsed).toBe(
      body,
    );
  });
});

describe("blocks are shared with", () => {
  const talk = [
    { role: "system", content: "You are a helpful assistant." },
    user("Tell me about the KV cache, please."),
  ];
  const key = (fields: object) => chatKey(talk, fields);

  test.each([
    { model: "other" },
    { model: "" },
    { lora_path: "adapter" },
    { cache_salt: "tenant" },
    { extra_key: "x" },
    { chat_template: "x" },
    { chat_template_kwargs: { enable_thinking: false } },
    { reasoning_effort: "high" },
    { truncate_prompt_tokens: 5 },
    { tools: [{ type: "function", function: { name: "f" } }] },
  ])("none of other models, adapters, salts and templates: %j", (fields) => {
    expect(key({}).sequenceHashes.length).toBeGreaterThan(3);
    expect(shared(key({}), key(fields))).toBe(0);
    expect(key(fields).fingerprint).not.toBe(key({}).fingerprint);
  });

  test("those that differ in what does not stand in the prompt", () => {
    const others = {
      temperature: 0.5,
      stream: true,
      user: "u",
      max_tokens: 5,
      tool_choice: "auto",
      n: 2,
      lora_path: null,
    };
    expect(key(others).sequenceHashes).toEqual(key({}).sequenceHashes);
    const tenant = keyOf("/v1/chat/completions", { model: "m", messages: talk }, { tenant: "t" });
    expect(tenant.sequenceHashes).toEqual(key({}).sequenceHashes); // as engines do, which know no tenants
    expect(tenant.fingerprint).not.toBe(key({}).fingerprint);
  });

  test("no salt that stands in a text", () => {
    const quoting = '","cache_salt":"x","model":"other","lora_path":"y","messages":[';
    const [a, b] = [chatKey([...talk, user(quoting)]), chatKey([...talk, user("plain")])];
    expect(shared(a, b)).toBe(key({}).sequenceHashes.length);
  });

  test("prompts whose objects have their fields in another order", () => {
    const tool = { type: "function", function: { name: "f", description: "d", parameters: { b: 1, a: 2 } } };
    const same = { function: { parameters: { b: 1, a: 2 }, description: "d", name: "f" }, type: "function" };
    const [one] = [keyOf("/v1/chat/completions", { model: "m", tools: [tool], messages: [user("x")] })];
    const two = keyOf("/v1/chat/completions", {
      messages: [{ content: "x", role: "user" }],
      tools: [same],
      model: "m",
    });
    expect(two.sequenceHashes).toEqual(one?.sequenceHashes);
    // A schema is text in the prompt, in the order in which it came.
    const other = { ...tool, function: { ...tool.function, parameters: { a: 2, b: 1 } } };
    expect(chatKey([user("x")], { tools: [other] }).fingerprint).not.toBe(one?.fingerprint);
  });
});

describe("completions and embeddings", () => {
  const prompt = "Once upon a time, in a land far away, ".repeat(4);
  const key = (prompts: unknown, fields: object = {}) =>
    keyOf("/v1/completions", { model: "m", prompt: prompts, ...fields });

  test("a text that grows keeps its full blocks", () => {
    expect(shared(key(prompt), key(`${prompt}there lived`))).toBe(key(prompt).sequenceHashes.length);
    expect(key([prompt]).sequenceHashes).toEqual(key(prompt).sequenceHashes);
    expect(key([prompt, "x"]).fingerprint).toBe(key(prompt).fingerprint);
  });

  test("tokens that grow do, too, and are no text", () => {
    const tokens = Array.from({ length: 64 }, (_, i) => 100 + i);
    const [one, two] = [key(tokens), key([...tokens, 5, 6])];
    expect(one.sequenceHashes.length).toBe(16);
    expect(shared(one, two)).toBe(16);
    expect(key([tokens]).sequenceHashes).toEqual(one.sequenceHashes);
    expect(shared(one, key([...tokens.slice(0, 8), 9, ...tokens.slice(9)]))).toBe(2);
  });

  test("prompts of a list are told apart, however they are cut", () => {
    const lists = [
      ["ab"],
      ["a", "b"],
      ["", "ab"],
      ["ab", ""],
      [[1, 2]],
      [[1], [2]],
      [1, 2, 3],
      [1.5],
      ["1"],
      [["1"]],
      [-1],
      [2 ** 32 - 1],
    ];
    const sums = lists.map((list) => {
      const { promptBytes, fingerprint } = key(list, { suffix: "" });
      return `${promptBytes} ${fingerprint}`;
    });
    expect(new Set(sums).size).toBe(lists.length);
    expect(key("a", { suffix: "b" }).promptBytes).toBeGreaterThan(key("a").promptBytes);
  });

  test("embeddings share no blocks with completions, and take messages as well", () => {
    const input = keyOf("/v1/embeddings", { model: "m", input: prompt });
    expect(input.sequenceHashes.length).toBe(key(prompt).sequenceHashes.length);
    expect(shared(input, key(prompt))).toBe(0);
    expect(keyOf("/v1/embeddings", { model: "m", messages: [user(prompt)] }).sequenceHashes.length).toBeGreaterThan(5);
  });
});

describe("images and the like", () => {
  const png = (data: string) => `data:image/png;base64,${data}`;
  const image = (url: string, more: object = {}) => [
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url, ...more } },
    { type: "text", text: "Answer in one word, and think before you do." },
  ];
  const key = (content: unknown) => chatKey([user(content)]);

  test("count by their content, and as some hundred tokens", () => {
    expect(shared(key(image(png("AAAA"))), key(image(png("AAAA"))))).toBe(
      key(image(png("AAAA"))).sequenceHashes.length,
    );
    expect(shared(key(image(png("AAAA"))), key(image(png("AAAB"))))).toBeLessThan(6);
    const [small, large] = [key(image(png("AAAA"))), key(image(png("A".repeat(100_000))))];
    expect(large.promptBytes).toBe(small.promptBytes);
    expect(small.promptBytes).toBeGreaterThan(MEDIA_BYTES);
  });

  test("are told apart by kind, source and detail", () => {
    const parts = [
      { type: "image_url", image_url: { url: "a" } },
      { type: "image_url", image_url: { url: "a", detail: "low" } },
      { type: "image_url", image_url: { url: "b" } },
      { type: "image_url", image_url: { url: "a" }, uuid: "u" },
      { type: "audio_url", audio_url: { url: "a" } },
      { type: "video_url", video_url: { url: "a" } },
      { type: "input_audio", input_audio: { data: "a", format: "wav" } },
      { type: "input_audio", input_audio: { data: "a", format: "mp3" } },
      { type: "file", file: { file_id: "a" } },
      { type: "file", file: { file_data: "a", filename: "f" } },
      { type: "input_file", file_url: "a" },
      { type: "input_image", file_id: "a" },
      { type: "image", source: { type: "file", file_id: "b" } },
      { type: "document", source: { type: "url", url: "a" } },
      { type: "document", source: { type: "url", url: "a" }, title: "t" },
      { type: "document", source: { type: "text", data: "a" } },
      { type: "image_url", image_url: null, uuid: "u" },
      { type: "text", text: "a" },
    ];
    expect(new Set(parts.map((part) => key([part]).fingerprint)).size).toBe(parts.length);
  });

  test("are the same through every API", () => {
    const chat = key([{ type: "image_url", image_url: { url: png("AAAA") } }]);
    const responses = keyOf("/v1/responses", {
      model: "m",
      input: [user([{ type: "input_image", image_url: png("AAAA") }])],
    });
    const source = { type: "base64", media_type: "image/png", data: "AAAA" };
    const messages = keyOf("/v1/messages", { model: "m", messages: [user([{ type: "image", source }])] });
    expect(responses.fingerprint).toBe(chat.fingerprint);
    expect(messages.fingerprint).toBe(chat.fingerprint);
  });
});

test("a lone surrogate counts as U+FFFD, as an encoder has it, and a pair as one character", () => {
  const [lone, replaced] = [chatKey([user("a\ud83d b")]), chatKey([user("a\ufffd b")])];
  expect(lone.fingerprint).toBe(replaced.fingerprint);
  expect(chatKey([user("a😀b")]).promptBytes).toBe(chatKey([user("a1234b")]).promptBytes);
  expect(chatKey([user("é")]).fingerprint).not.toBe(chatKey([user("e\u0301")]).fingerprint);
});

describe("a prompt beyond the limit", () => {
  test("has the hashes up to it", () => {
    const blocks = PROMPT_BLOCKS_MAX;
    const long = chatKey([user("x".repeat(4 * blocks))], {}, 4);
    expect(long.sequenceHashes.length).toBe(blocks);
    expect(long.promptBytes).toBe(4 * blocks);
    const within = chatKey([user("x".repeat(4 * blocks - 100))], {}, 4);
    expect(within.sequenceHashes.length).toBeLessThan(blocks);
    expect(shared(long, within)).toBeGreaterThan(blocks - 30);
  });

  test("is cut at so many bytes, however large its blocks and however many its images", () => {
    const images = Array.from({ length: 20_000 }, (_, i) => ({ type: "image_url", image_url: { url: `${i}` } }));
    const key = chatKey([user(images), assistant("y")], {}, 256);
    expect(key.promptBytes).toBe(PROMPT_BYTES_MAX);
    expect(key.sequenceHashes.length).toBe(PROMPT_BYTES_MAX / 256);
  });
});
