import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { joinBytes } from "../../src/bytes.js";
import { UpstreamError } from "../../src/errors.js";
import { EventBoundary } from "../../src/gateway/event-boundary.js";
import { ANSWER_BYTES_MAX, EVENT_BYTES_MAX, readerOf } from "../../src/gateway/stream.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (chunks: readonly Uint8Array[]) => new TextDecoder().decode(joinBytes(chunks));
const eventStream = new Headers({ "content-type": "text/event-stream; charset=utf-8" });
const json = new Headers({ "content-type": "application/json" });

const chunk = (content: string, finish: string | null = null) =>
  JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }], usage: null });
const usage = { prompt_tokens: 100, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 64 } };
const lastChunk = JSON.stringify({ choices: [], usage });

/** Cuts bytes at some places. */
function cut(whole: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [
    0,
    ...[...new Set(at.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b),
    whole.length,
  ];
  return places.slice(1).map((end, index) => whole.slice(places[index], end));
}

const cuts = fc.array(fc.nat(4_096), { maxLength: 40 });

/** A stream in one of the ways in which servers write it. */
const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
const stream = fc
  .tuple(
    lineEnd,
    fc.constantFrom("data: ", "data:"),
    fc.boolean(),
    fc.array(fc.string({ unit: "grapheme" }), { maxLength: 5 }),
  )
  .map(([end, data, comments, words]) => {
    const payloads = [...words.map((word) => chunk(word)), chunk("last", "stop"), lastChunk, "[DONE]"];
    const lines = payloads.map((payload) => `${comments ? `: ping${end}${end}` : ""}${data}${payload}${end}${end}`);
    return { whole: bytes(lines.join("")), tokens: words.length + 1 };
  });

describe("a stream of events", () => {
  test("passes byte for byte and is read alike, wherever it is cut", () => {
    fc.assert(
      fc.property(stream, cuts, ({ whole, tokens }, places) => {
        const reader = readerOf("chat", 200, eventStream);
        const passed = cut(whole, places).map((part) => reader.push(part));
        const { rest, isWhole } = reader.end();
        expect(joinBytes([...passed, rest])).toEqual(whole);
        expect(isWhole).toBe(true);
        expect(reader).toMatchObject({ hasEnded: true, hasFailed: false, outputTokens: Math.max(tokens, 3) });
        expect(reader.usage).toEqual({ promptTokens: 100, cachedTokens: 64, outputTokens: 3 });
      }),
    );
  });

  test("cut short anywhere, has passed whole events alone", () => {
    fc.assert(
      fc.property(stream, cuts, fc.nat(4_096), ({ whole }, places, length) => {
        const reader = readerOf("chat", 200, eventStream);
        const short = whole.slice(0, length % whole.length);
        const passed = text(cut(short, places).map((part) => reader.push(part)));
        expect(text([whole]).startsWith(passed)).toBe(true);
        expect(passed).toMatch(/(^|\n\n|\r\n\r\n?|\r\r)$/);
        expect(text([short]).slice(passed.length)).not.toMatch(/\n\n|\r\n\r\n|\r\r/);
      }),
    );
  });

  test("passes whole events at once, several in a chunk too, as the same bytes", () => {
    const reader = readerOf("chat", 200, eventStream);
    const two = bytes(`data: ${chunk("a")}\n\ndata: ${chunk("b")}\n\n`);
    expect(reader.push(two)).toEqual(two);
    expect(reader.outputTokens).toBe(2);
    expect(reader.push(bytes("data: 1"))).toHaveLength(0);
    expect(text([reader.push(bytes("2\n\ndata: 3"))])).toBe("data: 12\n\n");
    expect(text([reader.push(bytes("\n"))])).toBe("");
    expect(text([reader.push(bytes("\n"))])).toBe("data: 3\n\n");
  });

  test("is whole without its last empty line, and without its last word when all choices have finished", () => {
    for (const [end, isWhole] of [
      ["data: [DONE]", true],
      ["data: [DONE]\n", true],
      [`data: ${chunk("x", "stop")}\n\n`, true],
      [`data: ${chunk("x")}\n\n`, false],
      [
        `data: ${chunk("x", "stop")}\n\ndata: ${JSON.stringify({ choices: [{ index: 1, delta: {}, finish_reason: null }] })}\n\n`,
        false,
      ],
      ["", false],
      ["<html>", false],
    ] as const) {
      const reader = readerOf("chat", 200, eventStream);
      const passed = reader.push(bytes(end));
      expect([reader.end().isWhole, end]).toEqual([isWhole, end]);
      expect(text([passed]).length).toBeLessThanOrEqual(end.length);
    }
  });

  test("with an event of more than EVENT_BYTES_MAX passes unread", () => {
    for (const [length, held] of [
      [EVENT_BYTES_MAX, true],
      [EVENT_BYTES_MAX + 1, false],
    ] as const) {
      const reader = readerOf("chat", 200, eventStream);
      const begun = new Uint8Array(length).fill(0x61);
      expect(reader.push(begun)).toHaveLength(held ? 0 : length);
      expect(reader.farewell(new UpstreamError("KVROUTE_UPSTREAM_BROKEN", "x")) === undefined).toBe(!held);
      const passed = reader.push(bytes("\n\ndata: [DONE]\n\n"));
      expect(passed).toHaveLength((held ? length : 0) + 16);
      expect([reader.hasEnded, reader.end().isWhole]).toEqual([held, true]);
    }
  });

  test("is not misled by text that looks like a field", () => {
    const reader = readerOf("chat", 200, eventStream);
    reader.push(bytes(`data: ${chunk('"usage":{"prompt_tokens":9} [DONE]')}\n\n: data: [DONE]\n\nnodata: [DONE]\n\n`));
    expect(reader).toMatchObject({ hasEnded: false, usage: undefined, outputTokens: 1 });
  });

  test("survives events that are not of the protocol", () => {
    fc.assert(
      fc.property(fc.constantFrom("chat", "responses", "messages", "completions"), fc.json(), (dialect, data) => {
        const reader = readerOf(dialect, 200, eventStream);
        const sent = bytes(`data: ${data}\n\n`);
        expect(reader.push(sent)).toEqual(sent);
        reader.end();
      }),
    );
  });

  test("with an error of the engine's has failed, and ends there", () => {
    for (const [dialect, event] of [
      ["chat", { error: { message: "x" } }],
      ["responses", { type: "response.failed" }],
      ["responses", { type: "error", message: "x" }],
      ["messages", { type: "error", error: { type: "overloaded_error" } }],
    ] as const) {
      const reader = readerOf(dialect, 200, eventStream);
      reader.push(bytes(`data: ${JSON.stringify(event)}\n\n`));
      expect(reader).toMatchObject({ hasEnded: true, hasFailed: true });
    }
  });

  test("of Responses and of Messages is read by its own events", () => {
    const responses = readerOf("responses", 200, eventStream);
    const details = { input_tokens: 50, input_tokens_details: { cached_tokens: 16 }, output_tokens: 2 };
    responses.push(bytes(`event: x\ndata: ${JSON.stringify({ type: "response.output_text.delta", delta: "a" })}\n\n`));
    expect(responses).toMatchObject({ hasEnded: false, outputTokens: 1 });
    responses.push(bytes(`data: ${JSON.stringify({ type: "response.completed", response: { usage: details } })}\n\n`));
    expect(responses).toMatchObject({ hasEnded: true, usage: { promptTokens: 50, cachedTokens: 16, outputTokens: 2 } });
    const messages = readerOf("messages", 200, eventStream);
    const start = { input_tokens: 10, cache_read_input_tokens: 30, cache_creation_input_tokens: 2, output_tokens: 1 };
    messages.push(bytes(`data: ${JSON.stringify({ type: "message_start", message: { usage: start } })}\n\n`));
    messages.push(bytes(`data: ${JSON.stringify({ type: "content_block_delta" })}\n\n`));
    messages.push(bytes(`data: ${JSON.stringify({ type: "message_delta", usage: { output_tokens: 7 } })}\n\n`));
    expect(messages).toMatchObject({ hasEnded: false, outputTokens: 7 });
    messages.push(bytes(`data: ${JSON.stringify({ type: "message_stop" })}\n\n`));
    expect(messages).toMatchObject({ hasEnded: true, usage: { promptTokens: 42, cachedTokens: 30, outputTokens: 7 } });
  });

  test("that breaks off says so in the words of its protocol", () => {
    const error = new UpstreamError("KVROUTE_UPSTREAM_STALLED", "too late");
    const farewell = (dialect: "chat" | "responses" | "messages") =>
      text([readerOf(dialect, 200, eventStream).farewell(error) as Uint8Array]);
    const openAi = { error: { message: "too late", type: "server_error", param: null, code: error.code } };
    expect(farewell("chat")).toBe(`data: ${JSON.stringify(openAi)}\n\ndata: [DONE]\n\n`);
    const responses = { type: "error", code: error.code, message: "too late", param: null };
    expect(farewell("responses")).toBe(`event: error\ndata: ${JSON.stringify(responses)}\n\n`);
    const messages = { type: "error", error: { type: "timeout_error", message: "too late" } };
    expect(farewell("messages")).toBe(`event: error\ndata: ${JSON.stringify(messages)}\n\n`);
  });
});

describe("an answer that is no stream", () => {
  test("tells its usage when it is whole", () => {
    const whole = bytes(JSON.stringify({ text: "\u00e9".repeat(50), usage }));
    fc.assert(
      fc.property(cuts, (places) => {
        const reader = readerOf("chat", 200, json);
        for (const part of cut(whole, places)) expect(reader.push(part)).toBe(part);
        expect(reader.end().isWhole).toBe(true);
        expect(reader.usage).toEqual({ promptTokens: 100, cachedTokens: 64, outputTokens: 3 });
      }),
    );
  });

  test("of more than ANSWER_BYTES_MAX passes unread", () => {
    const empty = JSON.stringify({ pad: "", usage }).length;
    for (const more of [0, 1]) {
      const reader = readerOf("chat", 200, json);
      reader.push(bytes(JSON.stringify({ pad: "x".repeat(ANSWER_BYTES_MAX - empty + more), usage })));
      expect(reader.end().isWhole).toBe(true);
      expect(reader.usage === undefined).toBe(more === 1);
    }
  });

  test("is no answer if it is not an object in JSON, unless it is an error or of no known protocol", () => {
    for (const [dialect, status, body, isWhole] of [
      ["chat", 200, "[]", false],
      ["chat", 200, "{", false],
      ["chat", 200, "", false],
      ["chat", 500, "oops", true],
      [undefined, 200, "bytes", true],
    ] as const) {
      const reader = readerOf(dialect, status, json);
      reader.push(bytes(body));
      expect([body, reader.end().isWhole]).toEqual([body, isWhole]);
    }
  });

  test("counts nothing that is no count", () => {
    for (const prompt_tokens of [-1, 1.5, "7", null, 2 ** 60, [], {}]) {
      const reader = readerOf("chat", 200, json);
      reader.push(bytes(JSON.stringify({ usage: { prompt_tokens, completion_tokens: 2 } })));
      reader.end();
      expect(reader.usage).toEqual({ promptTokens: undefined, cachedTokens: undefined, outputTokens: 2 });
    }
  });
});

describe("the boundary of events", () => {
  /** Where the last event of a text ends, said in another way. */
  function naive(whole: string): number {
    let last = 0;
    for (const match of whole.matchAll(/(?:^|(?<=\n|\r(?!\n)|\r\n))(?:\r\n|\n|\r)/g))
      last = match.index + match[0].length;
    return last;
  }

  /** How far a text has passed when it comes in these parts. */
  function passedOf(parts: readonly string[]): number {
    const boundary = new EventBoundary();
    let passed = 0;
    let at = 0;
    for (const part of parts) {
      const ended = boundary.advance(bytes(part));
      if (ended > 0) passed = at + ended;
      at += part.length;
    }
    return passed;
  }

  test("is that of a naive search in all short texts, cut at each place", () => {
    let texts = [""];
    for (let length = 1; length <= 7; length++) {
      texts = texts.flatMap((start) => ["a", "\n", "\r"].map((end) => start + end));
      for (const whole of texts) {
        const last = naive(whole);
        for (let place = 0; place < length; place++) {
          if (passedOf([whole.slice(0, place), whole.slice(place)]) !== last)
            expect.fail(JSON.stringify([whole, place]));
        }
      }
    }
  });

  test("is that of a naive search, wherever the text is cut", () => {
    const texts = fc.array(fc.constantFrom("a", "\n", "\r", "\r\n", "data: x", "\n\n"), { maxLength: 12 });
    fc.assert(
      fc.property(texts, cuts, (parts, places) => {
        const whole = parts.join("");
        const pieces = cut(bytes(whole), places).map((piece) => text([piece]));
        expect([whole, passedOf(pieces)]).toEqual([whole, naive(whole)]);
      }),
      { numRuns: 2_000 },
    );
  });
});

test("an answer that is encoded passes unread", () => {
  const encoded = new Headers({ "content-type": "text/event-stream", "content-encoding": "br" });
  const reader = readerOf("chat", 200, encoded);
  expect(reader.push(Uint8Array.of(1, 2))).toEqual(Uint8Array.of(1, 2));
  expect(reader.end().isWhole).toBe(true);
  const plain = new Headers({ "content-type": "application/json", "content-encoding": "identity" });
  expect(readerOf("chat", 200, plain).end().isWhole).toBe(false);
});
