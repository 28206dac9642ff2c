import fc from "fast-check";
import { DONE, token } from "./stage.js";

// What workers may answer: events of all the protocols and what only looks like them, in pieces cut anywhere.

const count = fc.constantFrom<unknown>(0, 1, 5, -1, -1e300, 1e300, 2 ** 53, 0.5, null, "7", {}, []);
const usage = fc.record(
  {
    ...{ prompt_tokens: count, completion_tokens: count, input_tokens: count, output_tokens: count },
    ...{ cache_read_input_tokens: count, cache_creation_input_tokens: count },
    prompt_tokens_details: fc.oneof(fc.record({ cached_tokens: count }), count),
    input_tokens_details: fc.oneof(fc.record({ cached_tokens: count }), count),
  },
  { requiredKeys: [] },
);
const choice = fc.record(
  {
    index: count,
    text: fc.oneof(fc.string(), count),
    delta: fc.oneof(fc.record({ content: fc.string() }), count),
    finish_reason: fc.constantFrom<unknown>(null, "stop", 7),
  },
  { requiredKeys: [] },
);
const TYPES = [
  ...["response.created", "response.output_text.delta", "response.completed", "response.incomplete", "response.failed"],
  ...["error", "message_start", "content_block_delta", "message_delta", "message_stop", "ping"],
];
const data = fc.record(
  {
    id: fc.constantFrom<unknown>("resp_1", "x".repeat(5_000), 7),
    type: fc.constantFrom<unknown>(...TYPES, 7, null),
    choices: fc.oneof(fc.array(fc.oneof(choice, count), { maxLength: 3 }), count),
    usage: fc.oneof(usage, count),
    message: fc.oneof(fc.record({ usage }), count),
    response: fc.oneof(fc.record({ id: fc.string(), usage }), count),
    error: fc.constantFrom<unknown>(null, { message: "no" }, "no", 0),
  },
  { requiredKeys: [] },
);
const end = fc.constantFrom("\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n", "\n", "\r");
const line = fc.oneof(
  data.map((value) => `data: ${JSON.stringify(value)}`),
  fc.constantFrom(
    ": comment",
    "event: message",
    "id: 1",
    "retry: 10",
    "data",
    "data:",
    "data: [DONE]",
    "data: {",
    "\ufeff",
  ),
  fc.constantFrom(`data: "${"x".repeat(300_000)}"`, `: ${"x".repeat(1_100_000)}`),
  fc.string({ unit: "binary", maxLength: 20 }),
);
const event = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(data, end).map(([value, end]) => `data: ${JSON.stringify(value)}${end}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.array(line, { maxLength: 3 }), end, end).map(([all, eol, last]) => all.join(eol) + last),
  },
  { weight: 2, arbitrary: fc.constantFrom(token("Hi"), token("Hi", "stop"), DONE) },
);

const encoder = new TextEncoder();
const text = fc.oneof(
  { weight: 4, arbitrary: fc.array(event, { maxLength: 6 }).map((events) => events.join("")) },
  { weight: 2, arbitrary: data.map((value) => JSON.stringify(value)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("", "null", "[]", "<html>", "{", "[".repeat(50_000), `"${"x".repeat(1_100_000)}"`),
  },
);
const content = fc.oneof(
  { weight: 6, arbitrary: text.map((given) => encoder.encode(given)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
);

export interface FuzzAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly chunks: readonly Uint8Array[] | undefined;
  /** How the worker ends: not at all, before its answer, or behind what there is of it. */
  readonly end: "end" | "break" | "silence" | "refuse" | "throw" | "never";
  readonly cancelFails: boolean;
}

const type = fc.constantFrom(
  "text/event-stream",
  "text/event-stream; charset=utf-8",
  "TEXT/EVENT-STREAM",
  "application/json",
  "text/html",
  "",
);
const OTHER_HEADERS: readonly (readonly [string, string])[] = [
  ...([
    ["content-length", "3"],
    ["content-encoding", "gzip"],
    ["retry-after", "1"],
    ["retry-after", "soon"],
  ] as const),
  ...([
    ["x-should-retry", "true"],
    ["server-timing", "a;dur=1"],
    ["set-cookie", "a=b"],
    ["x-bad", "a\u0000b"],
  ] as const),
  ...([
    ["bad name", "1"],
    ["x-wide", "\u20ac"],
    ["retry-after-ms", "1e999"],
  ] as const),
];

export const answer: fc.Arbitrary<FuzzAnswer> = fc.record({
  status: fc.oneof(
    { weight: 4, arbitrary: fc.constant(200) },
    { weight: 2, arbitrary: fc.integer({ min: 100, max: 599 }) },
  ),
  statusText: fc.constantFrom("", "OK", "caf\u00e9", "a\nb", "\u20ac"),
  headers: fc
    .tuple(type, fc.array(fc.constantFrom(...OTHER_HEADERS), { maxLength: 2 }))
    .map(([type, others]) => [["content-type", type] as const, ...others]),
  chunks: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.tuple(content, fc.array(fc.nat(), { maxLength: 6 })).map(([all, cuts]) => piecesOf(all, cuts)),
    },
    { weight: 1, arbitrary: fc.constant(undefined) },
  ),
  end: fc.constantFrom("end", "end", "end", "break", "silence", "refuse", "throw", "never"),
  cancelFails: fc.boolean(),
});

/** Cuts bytes at some places; some pieces are empty. */
function piecesOf(all: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (all.length + 1)), all.length].sort((a, b) => a - b);
  return places.slice(1).map((place, index) => all.subarray(places[index], place));
}
