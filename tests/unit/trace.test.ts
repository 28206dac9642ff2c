import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TraceError } from "../../src/errors.js";
import { gunzip } from "../../src/node/bytes.js";
import { LINE_BYTES_MAX_DEFAULT, readTrace, type TraceOptions, type TraceRequest } from "../../src/sim/trace.js";

const NAME = "trace.jsonl.gz";
const ROW = { timestamp: 5, input_length: 1025, output_length: 7, hash_ids: [0, 1, 2] };
const AGENT_ROW = { timestamp: 5, session_id: "a", input_chars: 600, output_chars: 7, hash_ids: [3, 4] };

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const lines = (...rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

const streamOf = (...chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

const cut = (bytes: Uint8Array, ...places: readonly number[]): Uint8Array[] =>
  [0, ...places].map((from, at) => bytes.slice(from, places[at] ?? bytes.length));

const collect = async (
  source: string | Uint8Array | ReadableStream<Uint8Array>,
  options: TraceOptions = {},
): Promise<TraceRequest[]> => {
  const bytes = typeof source === "string" ? encode(source) : source;
  const requests: TraceRequest[] = [];
  const stream = bytes instanceof Uint8Array ? streamOf(bytes) : bytes;
  for await (const request of readTrace(stream, { name: NAME, ...options })) requests.push(request);
  return requests;
};

const failure = async (reading: Promise<unknown>): Promise<TraceError> => {
  const error = await reading.then(
    () => "no error",
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TraceError);
  return error as TraceError;
};

describe("a trace", () => {
  test("of the Mooncake form has lengths in tokens and blocks of 512 of them", async () => {
    expect(await collect(lines(ROW))).toEqual([
      {
        timestampMs: 5,
        promptTokens: 1025,
        outputTokens: 7,
        blockTokens: 512,
        unit: "token",
        sequenceHashes: BigUint64Array.of(0n, 1n, 2n),
      },
    ]);
  });

  test("of the agent form has lengths in characters, blocks of 256 of them, and sessions", async () => {
    expect(await collect(lines(AGENT_ROW))).toEqual([
      {
        timestampMs: 5,
        promptTokens: 600,
        outputTokens: 7,
        blockTokens: 256,
        unit: "character",
        sequenceHashes: BigUint64Array.of(3n, 4n),
        session: "a",
      },
    ]);
  });

  test("uses ids as sequence hashes up to 2^53 - 1", async () => {
    const [request] = await collect(lines({ ...ROW, hash_ids: [Number.MAX_SAFE_INTEGER, 0] }));
    expect(request?.sequenceHashes).toEqual(BigUint64Array.of(2n ** 53n - 1n, 0n));
  });

  test("may hold prompts without a full block", async () => {
    const requests = await collect(lines({ ...ROW, input_length: 0, hash_ids: [] }, ROW));
    expect(requests.map((request) => request.sequenceHashes.length)).toEqual([0, 3]);
  });

  test("may hold other fields, fractions of a millisecond, a byte order mark, CRLF, blank lines, no last newline", async () => {
    const text = `\uFEFF${JSON.stringify({ ...ROW, timestamp: 1.5, other: "ü" })}\r\n\r\n \n${JSON.stringify(ROW)}`;
    expect((await collect(text)).map((request) => request.timestampMs)).toEqual([1.5, 5]);
  });

  test("reads the same wherever its chunks end, inside a character too", async () => {
    const bytes = encode(lines({ ...AGENT_ROW, session_id: "ü€😀" }, AGENT_ROW));
    const whole = await collect(bytes);
    expect(whole[0]?.session).toBe("ü€😀");
    for (let place = 0; place <= bytes.length; place++) {
      expect(await collect(streamOf(...cut(bytes, place)))).toEqual(whole);
    }
    expect(await collect(streamOf(...Array.from(bytes, (byte) => Uint8Array.of(byte))))).toEqual(whole);
  });

  test("reads the same when it is gzipped, wherever its chunks end", async () => {
    const plain = lines(ROW, { ...ROW, timestamp: 9 });
    const bytes = new Uint8Array(gzipSync(plain));
    const whole = await collect(plain);
    for (let place = 0; place <= bytes.length; place++) {
      expect(await collect(streamOf(...cut(bytes, place)))).toEqual(whole);
      expect(await collect(streamOf(...cut(bytes, place)), { gunzip })).toEqual(whole);
    }
  });

  test("reads the same as plain and as gzipped bytes in chunks of any sizes", async () => {
    const rows = Array.from({ length: 20 }, (_, at) => ({ ...ROW, timestamp: at, hash_ids: [at] }));
    const plain = encode(lines(...rows));
    const whole = await collect(plain);
    for (const bytes of [plain, new Uint8Array(gzipSync(plain))]) {
      const places = fc.array(fc.nat(bytes.length), { maxLength: 6 });
      const property = fc.asyncProperty(places, async (anywhere) => {
        const sorted = [...anywhere].sort((left, right) => left - right);
        expect(await collect(streamOf(...cut(bytes, ...sorted)))).toEqual(whole);
      });
      await fc.assert(property, { numRuns: 30 });
    }
  });

  test("of several gzip members in a row is one trace to Node's zlib", async () => {
    const members = [ROW, AGENT_ROW].map(() => new Uint8Array(gzipSync(lines(ROW))));
    expect(await collect(streamOf(...members), { gunzip })).toHaveLength(2);
  });
});

describe("a bad trace", () => {
  const cases: readonly (readonly [string, string, string, string])[] = [
    ["text", "hello", "KVROUTE_TRACE_NOT_JSON", `${NAME}:2: expected a JSON object, got hello`],
    [
      "half a row",
      '{"timestamp": 1, ',
      "KVROUTE_TRACE_NOT_JSON",
      `${NAME}:2: expected a JSON object, got {"timestamp": 1, `,
    ],
    ["a list", "[1]", "KVROUTE_TRACE_NOT_JSON", `${NAME}:2: expected a JSON object, got [1]`],
    ["null", "null", "KVROUTE_TRACE_NOT_JSON", `${NAME}:2: expected a JSON object, got null`],
    [
      "control characters",
      `\u001b[31m${"x".repeat(50)}`,
      "KVROUTE_TRACE_NOT_JSON",
      `${NAME}:2: expected a JSON object, got \\u001b[31m${"x".repeat(35)}…`,
    ],
    [
      "a row of the other form",
      JSON.stringify(AGENT_ROW),
      "KVROUTE_TRACE_FORM",
      `${NAME}:2: expected a row of the Mooncake form like those before it, got one of the agent form`,
    ],
  ];
  test.each(cases)("names the line of %s", async (_, line, code, message) => {
    const error = await failure(collect(`${lines(ROW)}${line}\n`));
    expect(error).toMatchObject({ code, message, file: NAME, line: 2 });
  });

  const place = (problem: string, field: string): string => `${NAME}:2: field "${field}" ${problem}`;
  const whole = "must be a whole number of at least 0";
  const ids = `must hold whole numbers from 0 to ${Number.MAX_SAFE_INTEGER} only`;
  const fields: readonly (readonly [string, unknown, string])[] = [
    ["timestamp", undefined, "is missing"],
    ["timestamp", -1, "must be a number of at least 0, got -1"],
    ["timestamp", "1", 'must be a number of at least 0, got "1"'],
    ["input_length", undefined, "is missing"],
    ["input_length", -5, `${whole}, got -5`],
    ["input_length", 1.5, `${whole}, got 1.5`],
    ["input_length", null, `${whole}, got null`],
    ["input_length", "x".repeat(60), `${whole}, got "${"x".repeat(39)}…`],
    ["output_length", undefined, "is missing"],
    ["output_length", 2 ** 53, `${whole}, got ${2 ** 53}`],
    ["hash_ids", undefined, "is missing"],
    ["hash_ids", 3, "must be a list of whole numbers, got 3"],
    ["hash_ids", { length: 1 }, 'must be a list of whole numbers, got {"length":1}'],
    ["hash_ids", [0, -1], `${ids}, got -1 at place 2`],
    ["hash_ids", [0.5], `${ids}, got 0.5 at place 1`],
    ["hash_ids", [2 ** 53], `${ids}, got ${2 ** 53} at place 1`],
    ["hash_ids", ["1"], `${ids}, got "1" at place 1`],
    ["hash_ids", [null], `${ids}, got null at place 1`],
  ];
  test.each(fields)('names line and field of "%s": %j', async (field, value, problem) => {
    const error = await failure(collect(lines(ROW, { ...ROW, [field]: value })));
    expect(error).toMatchObject({ code: "KVROUTE_TRACE_FIELD", message: place(problem, field), line: 2, field });
  });

  const agentFields: readonly (readonly [string, unknown, string])[] = [
    ["session_id", undefined, "is missing"],
    ["session_id", 7, "must be a string, got 7"],
    ["input_chars", undefined, "is missing"],
    ["output_chars", -1, `${whole}, got -1`],
  ];
  test.each(agentFields)('of the agent form names line and field of "%s": %j', async (field, value, problem) => {
    const error = await failure(collect(lines(AGENT_ROW, { ...AGENT_ROW, [field]: value })));
    expect(error).toMatchObject({ code: "KVROUTE_TRACE_FIELD", message: place(problem, field) });
  });

  test("with a number beyond every double shows it as Infinity", async () => {
    const text = '{"timestamp":0,"input_length":1e999,"output_length":1,"hash_ids":[]}';
    expect((await failure(collect(text))).message).toContain("got Infinity");
  });

  test("of neither form names the fields of both", async () => {
    const error = await failure(collect(lines({ timestamp: 0, hash_ids: [] })));
    expect(error.message).toBe(`${NAME}:1: field "input_length" and "input_chars" are missing`);
  });

  test("is refused when it is not UTF-8, and the line is named", async () => {
    const bytes = Uint8Array.of(...encode(lines(ROW)), 0x22, 0xff, 0x22, 0x0a);
    const error = await failure(collect(bytes));
    expect(error).toMatchObject({ code: "KVROUTE_TRACE_NOT_UTF8", message: `${NAME}:2: the line is not valid UTF-8` });
  });

  test.each([
    ["", "the trace is empty"],
    ["\n \n", "the trace holds no valid request in its 2 line(s)"],
  ])("without a request is an error: %j", async (text, problem) => {
    for (const bytes of [encode(text), new Uint8Array(gzipSync(text))]) {
      const error = await failure(collect(bytes));
      expect(error).toMatchObject({ code: "KVROUTE_TRACE_EMPTY", message: `${NAME}: ${problem}`, line: undefined });
    }
  });

  test("of only half of gzip's two bytes is no gzip, and no JSON", async () => {
    for (const bytes of [Uint8Array.of(0x1f), Uint8Array.of(0x1f, 0x20)]) {
      expect((await failure(collect(bytes))).code).toBe("KVROUTE_TRACE_NOT_JSON");
    }
  });

  test.each([
    ["the runtime's DecompressionStream", undefined],
    ["Node's zlib", gunzip],
  ])("is refused wherever its gzip data is cut short, by %s", async (_, decoder) => {
    const bytes = new Uint8Array(gzipSync(lines(ROW)));
    for (let length = 2; length < bytes.length; length++) {
      const error = await failure(collect(bytes.slice(0, length), { gunzip: decoder }));
      expect(error.code).toBe("KVROUTE_TRACE_GZIP");
      expect(error.message).toMatch(/^trace\.jsonl\.gz:[12]: the gzip data is cut short or damaged$/);
    }
  });

  test("is refused when its gzip data is damaged", async () => {
    const bytes = new Uint8Array(gzipSync(lines(ROW)));
    const checksum = bytes.length - 6;
    bytes[checksum] = (bytes[checksum] as number) ^ 1;
    expect((await failure(collect(bytes))).code).toBe("KVROUTE_TRACE_GZIP");
    expect((await failure(collect(Uint8Array.of(0x1f, 0x8b, 1, 2, 3, 4)))).code).toBe("KVROUTE_TRACE_GZIP");
  });
});

describe("a line", () => {
  const line = lines(ROW);
  const bytes = encode(line).length - 1;

  test("may be as long as the limit, and no longer", async () => {
    expect(await collect(line, { lineBytesMax: bytes })).toHaveLength(1);
    const error = await failure(collect(line, { lineBytesMax: bytes - 1 }));
    expect(error).toMatchObject({
      code: "KVROUTE_TRACE_LINE_TOO_LONG",
      message: `${NAME}:1: expected a line of at most ${bytes - 1} bytes, got a longer one`,
    });
  });

  test("that never ends is refused at the end of the stream, and not kept", async () => {
    const piece = new Uint8Array(1024 * 1024).fill(0x20);
    const pieces = Array.from({ length: LINE_BYTES_MAX_DEFAULT / piece.length + 1 }, () => piece);
    expect((await failure(collect(streamOf(...pieces)))).code).toBe("KVROUTE_TRACE_LINE_TOO_LONG");
  });

  test("must have a limit that is a whole number of at least 1", async () => {
    for (const lineBytesMax of [0, 1.5, Number.NaN]) {
      await expect(collect(line, { lineBytesMax })).rejects.toMatchObject({
        code: "KVROUTE_OPTION",
        message: `Expected lineBytesMax to be a whole number of at least 1, got ${lineBytesMax}.`,
      });
    }
  });
});

describe("bad rows", () => {
  test("are left out and reported one by one when somebody listens", async () => {
    const rows = ["nonsense", JSON.stringify(ROW), JSON.stringify(AGENT_ROW), "x".repeat(200), JSON.stringify(ROW)];
    const bad: TraceError[] = [];
    const onBadRow = (error: TraceError): void => void bad.push(error);
    expect(await collect(rows.join("\n"), { onBadRow, lineBytesMax: 100 })).toHaveLength(2);
    expect(bad.map((error) => `${error.line} ${error.code}`)).toEqual([
      "1 KVROUTE_TRACE_NOT_JSON",
      "3 KVROUTE_TRACE_FORM",
      "4 KVROUTE_TRACE_LINE_TOO_LONG",
    ]);
  });

  test("do not make a trace: one of bad rows only is an error", async () => {
    const error = await failure(collect("a\nb\n", { onBadRow: () => undefined }));
    expect(error.message).toBe(`${NAME}: the trace holds no valid request in its 2 line(s)`);
  });

  test("do not decide the form", async () => {
    const text = lines({ ...AGENT_ROW, session_id: 1 }, ROW, ROW);
    expect(await collect(text, { onBadRow: () => undefined })).toHaveLength(2);
  });
});

describe("the stream behind a trace", () => {
  const endless = (bytes: Uint8Array, onCancel: () => void): ReadableStream<Uint8Array> =>
    new ReadableStream({ pull: (controller) => controller.enqueue(bytes), cancel: onCancel });

  test("is cancelled when the reader has had enough", async () => {
    for (const bytes of [encode(lines(ROW)), new Uint8Array(gzipSync(lines(ROW)))]) {
      let cancelled = 0;
      for await (const request of readTrace(
        endless(bytes, () => cancelled++),
        { gunzip },
      )) {
        expect(request.promptTokens).toBe(1025);
        break;
      }
      expect(cancelled).toBe(1);
    }
  });

  test("is cancelled together with its decoder", async () => {
    const cancelled: string[] = [];
    const source = endless(Uint8Array.of(0x1f, 0x8b), () => cancelled.push("source"));
    const decoded = endless(encode(lines(ROW)), () => cancelled.push("decoder"));
    for await (const _ of readTrace(source, { gunzip: () => decoded })) break;
    expect(cancelled.sort()).toEqual(["decoder", "source"]);
  });

  test("is cancelled at a bad row", async () => {
    let cancelled = 0;
    await failure(collect(endless(encode("bad\n"), () => cancelled++)));
    expect(cancelled).toBe(1);
  });

  test("passes its own failure on, plain or gzipped", async () => {
    for (const start of [encode(lines(ROW)), new Uint8Array(gzipSync(lines(ROW))).slice(0, 20)]) {
      for (const decoder of [gunzip, undefined]) {
        const fault = new Error("the disk is gone");
        let pulls = 0;
        const stream = new ReadableStream<Uint8Array>({
          pull: (controller) => (pulls++ === 0 ? controller.enqueue(start) : controller.error(fault)),
        });
        await expect(collect(stream, { gunzip: decoder })).rejects.toBe(fault);
      }
    }
  });
});
