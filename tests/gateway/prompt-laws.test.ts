import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asChat, asMessages, asResponses, chatKey, keyOf, shared, type Talk } from "./prompt-stage.js";

const text = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.constantFrom("", "ÿ", "ÿe", "ÿmuserÿc", '","role":"user"', '"user": "eve"', "\ud800", "\0"),
);
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const talk: fc.Arbitrary<Talk> = fc.record({
  system: text,
  tools: fc.array(
    fc.record({
      name: fc.string(),
      description: text,
      schema: fc.dictionary(fc.string(), json).map((o) => ({ ...o })),
    }),
    { maxLength: 2 },
  ),
  turns: fc.array(
    fc.record({
      user: text,
      assistant: text,
      calls: fc.array(
        fc.record({ name: fc.string(), args: fc.dictionary(fc.string(), json).map((o) => ({ ...o })), result: text }),
        { maxLength: 2 },
      ),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});

const APIS = [
  ["/v1/chat/completions", asChat],
  ["/v1/responses", asResponses],
  ["/v1/messages", asMessages],
] as const;

describe.each(APIS)("%s", (path, render) => {
  test("a further turn keeps every full block of the ones before, and the fingerprint", () => {
    fc.assert(
      fc.property(talk, (whole) => {
        const keys = whole.turns.map((_, last) =>
          keyOf(path, render({ ...whole, turns: whole.turns.slice(0, last + 1) })),
        );
        for (let i = 1; i < keys.length; i++) {
          const [before, after] = [keys[i - 1] as (typeof keys)[0], keys[i] as (typeof keys)[0]];
          expect(shared(before, after)).toBe(before.sequenceHashes.length);
          expect(after.promptBytes).toBeGreaterThan(before.promptBytes);
          expect(after.fingerprint).toBe(before.fingerprint);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a full block is shared up to the first change, and none behind it", () => {
    const change = fc.record({ whole: talk, at: fc.nat(), other: text });
    fc.assert(
      fc.property(change, ({ whole, at, other }) => {
        const index = at % whole.turns.length;
        const changed = whole.turns.map((turn, i) => (i === index ? { ...turn, user: `${turn.user}!${other}` } : turn));
        const [a, b] = [keyOf(path, render(whole)), keyOf(path, render({ ...whole, turns: changed }))];
        const bytesTo = (talk: Talk, turns: number) =>
          keyOf(path, render({ ...talk, turns: talk.turns.slice(0, turns) })).promptBytes;
        const start = bytesTo(whole, index);
        const end = Math.max(bytesTo(whole, index + 1), bytesTo({ ...whole, turns: changed }, index + 1));
        const same = shared(a, b);
        expect(same).toBeGreaterThanOrEqual(Math.floor(start / 16));
        expect(same).toBeLessThanOrEqual(Math.ceil(end / 16));
        const known = new Set(a.sequenceHashes);
        expect([...b.sequenceHashes.subarray(same)].filter((hash) => known.has(hash))).toEqual([]);
        expect(a.fingerprint === b.fingerprint).toBe(index > 0);
      }),
      { numRuns: 60 },
    );
  });

  test("what the cache of a provider is told moves no key", () => {
    fc.assert(
      fc.property(talk, (whole) => {
        const marked = JSON.parse(JSON.stringify(render(whole)), (key, value: unknown) =>
          key !== "schema" && typeof value === "object" && value !== null && "type" in value && "text" in value
            ? { ...value, cache_control: { type: "ephemeral", ttl: "1h" } }
            : value,
        ) as object;
        expect(keyOf(path, marked).fingerprint).toBe(keyOf(path, render(whole)).fingerprint);
      }),
      { numRuns: 30 },
    );
  });
});

test("a conversation has one key in chat completions, responses and messages", () => {
  fc.assert(
    fc.property(talk, (whole) => {
      const [chat, ...others] = APIS.map(([path, render]) => keyOf(path, render(whole)));
      for (const other of others) {
        expect(other.sequenceHashes).toEqual(chat?.sequenceHashes);
        expect(other.promptBytes).toBe(chat?.promptBytes);
        expect(other.fingerprint).toBe(chat?.fingerprint);
      }
    }),
    { numRuns: 100 },
  );
});

describe("prompts have the same text only if they are the same", () => {
  // Without a message of a user, the fingerprint covers all of the text.
  const hashOf = (messages: unknown) => chatKey(messages).fingerprint;
  const TEXTS = ["", "a", "p", "ÿ", "ÿpa", "aÿe"];
  const contents: unknown[] = [
    ...TEXTS,
    [],
    ...TEXTS.map((one) => [{ type: "text", text: one }]),
    ...TEXTS.flatMap((one) =>
      TEXTS.map((two) => [
        { type: "text", text: one },
        { type: "text", text: two },
      ]),
    ),
    [{ type: "image_url", image_url: { url: "a" } }],
    [
      { type: "text", text: "" },
      { type: "image_url", image_url: { url: "a" } },
    ],
    [{ type: "odd", text: "a" }],
  ];
  const normal = (content: unknown) => {
    const parts = (Array.isArray(content) ? content : [content]).map((part) =>
      typeof part === "string" ? part : part.type === "text" ? part.text : part,
    );
    return parts.length === 1 && parts[0] === "" ? [] : parts;
  };
  const messages = ["ap", "a"].flatMap((role) => contents.map((content) => ({ role, content })));

  test("for all conversations of two messages of two parts, written in ways that imitate each other", () => {
    const lists = [
      [],
      ...messages.map((one) => [one]),
      ...messages.flatMap((one) => messages.map((two) => [one, two])),
    ];
    const hashes = new Map<string, string>();
    const forms = new Map<string, string>();
    for (const list of lists) {
      const form = JSON.stringify(list.map(({ role, content }) => [role, normal(content)]));
      const hash = hashOf(list);
      expect(hashes.get(form) ?? hash).toBe(hash);
      expect(forms.get(hash) ?? form).toBe(form);
      hashes.set(form, hash);
      forms.set(hash, form);
    }
    expect(hashes.size).toBe(forms.size);
    expect(hashes.size).toBeGreaterThan(5_000);
  });

  test("for texts that are cut at other places", () => {
    const pieces = fc.array(fc.constantFrom("a", "ÿ", "m", "e", "c", "p", '"', "\\", "user", "é", "😀"), {
      maxLength: 8,
    });
    const cut = fc.tuple(pieces, fc.array(fc.nat({ max: 2 }), { minLength: 8, maxLength: 8 }));
    const build = ([parts, cuts]: [string[], number[]]) => {
      const list: { role: string; content: { type: "text"; text: string }[] }[] = [{ role: "assistant", content: [] }];
      parts.forEach((piece, i) => {
        const last = list[list.length - 1] as (typeof list)[0];
        if (cuts[i] === 0) list.push({ role: "assistant", content: [{ type: "text", text: piece }] });
        else if (cuts[i] === 1 || last.content.length === 0) last.content.push({ type: "text", text: piece });
        else (last.content[last.content.length - 1] as { text: string }).text += piece;
      });
      return list;
    };
    fc.assert(
      fc.property(cut, fc.array(fc.nat({ max: 2 }), { minLength: 8, maxLength: 8 }), ([parts, cuts], others) => {
        const [a, b] = [build([parts, cuts]), build([parts, others])];
        expect(hashOf(a) === hashOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 500 },
    );
  });

  test("for tools, calls and results whose fields flow into each other", () => {
    const tool = (name: string, description?: string, parameters?: unknown) => ({
      type: "function",
      function: { name, description, parameters },
    });
    const call = (id: unknown, name: unknown, args: unknown) => ({
      role: "assistant",
      tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
    });
    const bodies = [
      { tools: [tool("ab")] },
      { tools: [tool("a", "b")] },
      { tools: [tool("a"), tool("b")] },
      { tools: [tool("aÿdb")] },
      { tools: [tool("a", "b", {})] },
      { tools: [tool("a", "b", { type: "object" })] },
      { tools: [{ type: "web_search" }] },
      { documents: [{ type: "web_search" }] },
      { documents: [tool("ab")] },
      { messages: [call("1", "f", "{}")] },
      { messages: [call("1f", "", "{}")] },
      { messages: [call("", "1f", "{}")] },
      { messages: [call("1", "f", "{}{")] },
      { messages: [call("1", "f", '{"a":1}')] },
      { messages: [call(1, "f", "{}")] },
      { messages: [call("1", "f", "{}"), call("1", "f", "{}")] },
      { messages: [{ role: "assistant", content: "1f{}" }] },
      { messages: [{ role: "tool", tool_call_id: "1", content: "x" }] },
      { messages: [{ role: "tool", name: "1", content: "x" }] },
      { messages: [{ role: "tool", content: "1x" }] },
      { messages: [{ role: null, content: "x" }] },
      { messages: [{ role: "null", content: "x" }] },
      { messages: [{ role: "assistant", reasoning_content: "x" }] },
      { messages: [{ role: "assistant", content: "x" }] },
      { messages: [{ role: "assistant", refusal: "x" }] },
    ];
    const hashes = bodies.map((body) => chatKey([], body).fingerprint);
    expect(new Set(hashes).size).toBe(bodies.length);
  });
});
