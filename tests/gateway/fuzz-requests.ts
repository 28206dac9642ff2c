import fc from "fast-check";

// What clients may send, mostly near to what makes sense: what is far from it is refused at once.

export const PATHS = ["chat/completions", "completions", "responses", "messages", "embeddings"].map(
  (path) => `/v1/${path}`,
);
const OTHER_PATHS = ["/v1/models", "/v1/responses/resp_1/cancel", "/v1/files", "/v1/", "/v1", "/", "", "/metrics"];

/** Values of the wrong type, too long, too deep, too large, and with halves of characters. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary" }),
  fc.constantFrom<unknown>(
    ...[
      null,
      true,
      false,
      0,
      -0,
      -1,
      0.5,
      1e308,
      -1e308,
      2 ** 53,
      "",
      "\ud800",
      "\udc00\ud800",
      "__proto__",
      "a\u0000b",
    ],
    ...[[], {}, [[]], [null], [[1, 2, 3]], { role: "user" }, { type: "text" }, { type: "image_url", image_url: null }],
    ...["x".repeat(5_000), { toString: 1 }, { toJSON: 1 }, { length: 9e9 }],
  ),
);
const role = fc.constantFrom<unknown>("user", "system", "assistant", "tool", "developer", "", null, 7);
const part = fc.record(
  {
    type: fc.oneof(fc.constantFrom("text", "input_text", "image_url", "tool_use", "tool_result", "thinking"), odd),
    text: fc.oneof(fc.string(), odd),
    image_url: odd,
    source: odd,
    content: odd,
    input: odd,
    id: odd,
  },
  { requiredKeys: [] },
);
const content = fc.oneof(fc.string(), fc.array(part, { maxLength: 3 }), odd);
const message = fc.record(
  {
    role,
    content,
    name: odd,
    tool_calls: odd,
    tool_call_id: odd,
    function_call: odd,
    reasoning: odd,
    type: odd,
    output: odd,
  },
  { requiredKeys: ["role"] },
);
const messages = fc.oneof(fc.array(fc.oneof(message, odd), { maxLength: 4 }), odd);

const FIELDS = [
  ...["model", "stream", "tools", "functions", "documents", "system", "instructions", "prompt", "suffix", "input"],
  ...[
    "user",
    "metadata",
    "prompt_cache_key",
    "previous_response_id",
    "conversation",
    "session_id",
    "safety_identifier",
  ],
  ...["lora_path", "lora_name", "adapter_id", "cache_salt", "extra_key", "chat_template", "chat_template_kwargs"],
  ...["add_special_tokens", "truncate_prompt_tokens", "mm_processor_kwargs", "reasoning", "reasoning_effort"],
  ...[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "text",
    "response_format",
    "thinking",
    "cache_control",
  ],
];
const fields = fc.dictionary(fc.oneof(fc.constantFrom(...FIELDS), fc.string()), odd, { maxKeys: 6 });
const body = fc
  .tuple(
    fields,
    fc.record({ messages, input: messages, prompt: content, model: fc.constant("m") }, { requiredKeys: [] }),
  )
  .map(([wild, known]) => JSON.stringify({ ...known, ...wild }));

const nested = fc.nat(600).map((depth) => `${'{"messages":['.repeat(depth)}${"]}".repeat(depth)}`);
const cut = fc
  .tuple(body, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([text, part]) => text.slice(0, text.length * part));
const numbers = fc
  .constantFrom("1e999", "-1e999", "9".repeat(400), "0.0000000000000000001", "NaN", "Infinity", "-", "01")
  .map((number) => `{"model":"m","max_tokens":${number},"messages":${number},"prompt":[${number},${number}]}`);
const encoder = new TextEncoder();

export const bytes: fc.Arbitrary<Uint8Array | undefined> = fc.oneof(
  { weight: 6, arbitrary: body.map((text) => encoder.encode(text)) },
  { weight: 1, arbitrary: fc.oneof(nested, cut, numbers).map((text) => encoder.encode(text)) },
  { weight: 1, arbitrary: fc.tuple(body, fc.nat(), fc.nat(255)).map(([text, at, byte]) => spoilt(text, at, byte)) },
  { weight: 1, arbitrary: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(undefined)) },
);

function spoilt(text: string, at: number, byte: number): Uint8Array {
  const spoilt = encoder.encode(text);
  spoilt[at % spoilt.length] = byte;
  return spoilt;
}

const NAMES = [
  ...[
    "content-type",
    "authorization",
    "x-api-key",
    "api-key",
    "x-session-id",
    "x-claude-code-session-id",
    "session_id",
  ],
  ...["connection", "transfer-encoding", "accept-encoding", "cookie", "traceparent", "x-kvroute-worker", "x-other"],
];
const value = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'aB9 ,;=-/"\\~') }),
  fc.constantFrom("x".repeat(2_000), "Bearer k", "keep-alive, x-other", "gzip"),
);

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly bytes: Uint8Array | undefined;
}

export const request: fc.Arbitrary<FuzzRequest> = fc.record({
  method: fc.constantFrom(...["POST", "POST", "POST", "POST", "GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
  path: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...PATHS) },
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.constantFrom(...OTHER_PATHS),
        fc.webPath().map((path) => `/v1${path}`),
      ),
    },
  ),
  query: fc.constantFrom("", "", "?a=1", "?"),
  headers: fc.array(fc.tuple(fc.constantFrom(...NAMES), value), { maxLength: 4 }),
  bytes,
});
