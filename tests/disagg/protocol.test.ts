import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as protocol from "../../src/disagg/protocol.js";
import { KvrouteError, ProtocolError } from "../../src/errors.js";
import { scaled } from "../support/scale.js";

interface Encoding {
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly hex: string;
  readonly isDone?: boolean;
}
interface Wire {
  readonly tags: Readonly<Record<string, number>>;
  readonly transportTags: Readonly<Record<string, number>>;
  readonly doneSentinel: { readonly value: string };
  readonly eosToken: { readonly value: string };
  readonly messages: readonly {
    readonly name: string;
    readonly size: number | null;
    readonly fields: readonly { readonly name: string; readonly type: string }[];
  }[];
  readonly encodings: readonly Encoding[];
  readonly decodings: readonly Readonly<Record<string, Readonly<Record<string, unknown>> | string>>[];
}

const wire = JSON.parse(
  readFileSync(new URL("../conformance/vectors/router/wire.json", import.meta.url), "utf8"),
) as Wire;

type Fields = Record<string, unknown>;
interface Codec {
  encode(fields: Fields): Uint8Array;
  decode(bytes: Uint8Array): Fields;
}

// biome-ignore lint/suspicious/noExplicitAny: the vectors name codecs and fields as texts
const codec = (encode: (fields: any) => Uint8Array, decode: (bytes: Uint8Array) => any): Codec => ({ encode, decode });
const codecs: Readonly<Record<string, Codec>> = {
  PrefillRequest: codec(protocol.encodePrefillRequest, protocol.decodePrefillRequest),
  PrefillDone: codec(protocol.encodePrefillDone, protocol.decodePrefillDone),
  DecodeRequest: codec(protocol.encodeDecodeRequest, protocol.decodeDecodeRequest),
  DecodedToken: codec(protocol.encodeDecodedToken, protocol.decodeDecodedToken),
  KvCacheHeader: codec(protocol.encodeKvCacheHeader, protocol.decodeKvCacheHeader),
  KvCacheAck: codec(protocol.encodeKvCacheAck, (bytes) => {
    protocol.decodeKvCacheAck(bytes);
    return {};
  }),
  DecodeDone: codec(protocol.encodeDecodeDone, protocol.decodeDecodeDone),
  LayerAssignment: codec(protocol.encodeLayerAssignment, protocol.decodeLayerAssignment),
  GenRequestHeader: codec(protocol.encodeGenRequestHeader, protocol.decodeGenRequestHeader),
  Cancel: codec(protocol.encodeCancel, protocol.decodeCancel),
};
const codecOf = (name: string) => codecs[name] as Codec;

/** The bytes of each message of a fixed size. */
const sizes = new Map([
  ...wire.messages.flatMap(({ name, size }) => (size === null ? [] : ([[name, size]] as const))),
  ["Cancel", 8] as const,
]);

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));

/** Gives fields of a vector the types they have here: 64-bit ones are bigints. */
function typed(fields: Readonly<Record<string, unknown>>): Fields {
  const pairs = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? BigInt(value) : value,
  ]);
  return Object.fromEntries(pairs.filter(([name]) => name !== "isDone"));
}

describe("wire.json", () => {
  test("has the tags of the original, and ours are free there", () => {
    const { error, cancel, layerAssignment, promptTokens, genRequestHeader, ...rest } = protocol.TAGS;
    expect(Object.values(rest).sort()).toEqual(Object.values(wire.tags).sort());
    expect([layerAssignment, promptTokens, genRequestHeader]).toEqual([
      wire.transportTags["LAYER_ASSIGNMENT"],
      wire.transportTags["ACTIVATION"],
      wire.transportTags["GEN_REQUEST"],
    ]);
    const taken = [...Object.values(wire.tags), ...Object.values(wire.transportTags)];
    expect([error, cancel]).toEqual([
      Math.max(...Object.values(wire.tags)) + 1,
      Math.max(...Object.values(wire.tags)) + 2,
    ]);
    expect(taken).not.toContain(error);
    expect(taken).not.toContain(cancel);
  });

  test("has the special tokens", () => {
    expect(protocol.DONE_SENTINEL).toBe(BigInt(wire.doneSentinel.value));
    expect(protocol.EOS_TOKEN).toBe(BigInt(wire.eosToken.value));
  });

  test("names no message that has no codec here", () => {
    const named = wire.messages.filter(({ size }) => size !== null).map(({ name }) => name);
    expect(named.filter((name) => !(name in codecs))).toEqual([]);
  });

  test.each(wire.encodings)("encodes and decodes $message $hex", ({ message, fields, hex, isDone }) => {
    const { encode, decode } = codecOf(message);
    expect(hexOf(encode(typed(fields)))).toBe(hex);
    expect(decode(bytesOf(hex))).toEqual(typed(fields));
    if (isDone !== undefined) expect(typed(fields)["tokenId"] === protocol.DONE_SENTINEL).toBe(isDone);
  });

  test.each(wire.decodings)("decodes $hex as every message of its size", ({ hex, ...messages }) => {
    for (const [message, fields] of Object.entries(messages)) {
      const { isDone } = fields as { isDone?: boolean };
      const decoded = codecOf(message).decode(bytesOf(hex as string));
      expect(decoded).toEqual(typed(fields as Fields));
      if (isDone !== undefined) expect(decoded["tokenId"] === protocol.DONE_SENTINEL).toBe(isDone);
    }
  });
});

describe("messages of a fixed size", () => {
  test("an acknowledgement is eight zero bytes", () => {
    expect(hexOf(protocol.encodeKvCacheAck())).toBe("0000000000000000");
  });

  test.each([...sizes])("%s is refused at every length from 0 to 64 but its own", (message, size) => {
    for (let length = 0; length <= 64; length++) {
      const bytes = new Uint8Array(length).fill(length);
      if (length === size) codecOf(message).decode(bytes);
      else
        expect(() => codecOf(message).decode(bytes)).toThrow(`Expected a ${message} of ${size} bytes, got ${length}.`);
    }
  });

  test.each([...sizes])("%s is read where its bytes stand in a larger buffer", (message, size) => {
    const bytes = new Uint8Array(size + 9).map((_, index) => index * 7);
    const own = bytes.slice(5, 5 + size);
    expect(codecOf(message).decode(bytes.subarray(5, 5 + size))).toEqual(codecOf(message).decode(own));
  });

  test.each([
    ["a request id above 64 bits", () => protocol.encodeCancel({ requestId: 2n ** 64n }), "KVROUTE_ARGUMENT_RANGE"],
    ["a negative request id", () => protocol.encodeDecodeDone({ requestId: -1n }), "KVROUTE_ARGUMENT_RANGE"],
    ["a request id that is a number", () => protocol.encodeCancel({ requestId: 1 as never }), "KVROUTE_ARGUMENT_TYPE"],
    ["a length above 32 bits", () => prefill({ seqLen: 2 ** 32 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a length that is no whole number", () => prefill({ seqLen: 1.5 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a negative rank", () => prefill({ decodeRank: -1 }), "KVROUTE_ARGUMENT_RANGE"],
    ["a rank that is a bigint", () => prefill({ decodeRank: 1n }), "KVROUTE_ARGUMENT_TYPE"],
    ["a token above 63 bits", () => token(2n ** 63n), "KVROUTE_ARGUMENT_RANGE"],
    ["a token below 63 bits", () => token(-(2n ** 63n) - 1n), "KVROUTE_ARGUMENT_RANGE"],
    ["tokens that are a list", () => protocol.encodePromptTokens([1n] as never), "KVROUTE_ARGUMENT_TYPE"],
    [
      "a text that is none",
      () => protocol.encodeError({ requestId: 1n, code: 1, text: 7 as never }),
      "KVROUTE_ARGUMENT_TYPE",
    ],
    [
      "a code above 32 bits",
      () => protocol.encodeError({ requestId: 1n, code: 2 ** 32, text: "" }),
      "KVROUTE_ARGUMENT_RANGE",
    ],
    ["bytes that are a text", () => protocol.decodeCancel("12345678" as never), "KVROUTE_ARGUMENT_TYPE"],
  ])("%s is refused", (_, call, code) => {
    expect(call).toThrow(expect.objectContaining({ code }));
  });
});

const prefill = (fields: object) =>
  protocol.encodePrefillRequest({ requestId: 1n, seqLen: 1, decodeRank: 1, ...fields });
const token = (tokenId: bigint) => protocol.encodeDecodedToken({ requestId: 1n, tokenId });

describe("a prompt", () => {
  test("comes back as it was, in memory of its own", () => {
    const tokens = BigInt64Array.of(1n, -1n, -(2n ** 63n), 2n ** 63n - 1n, 0n);
    const bytes = protocol.encodePromptTokens(tokens);
    expect(hexOf(bytes.subarray(0, 16))).toBe("0100000000000000ffffffffffffffff");
    const decoded = protocol.decodePromptTokens(bytes);
    bytes.fill(0);
    expect(decoded).toEqual(tokens);
  });

  test("may be empty", () => {
    expect(protocol.decodePromptTokens(protocol.encodePromptTokens(new BigInt64Array(0)))).toHaveLength(0);
  });

  test("is refused at a length that is no multiple of a token's", () => {
    for (let length = 0; length <= 64; length++) {
      const decode = () => protocol.decodePromptTokens(new Uint8Array(length));
      if (length % 8 === 0) expect(decode()).toHaveLength(length / 8);
      else expect(decode).toThrow(ProtocolError);
    }
  });
});

test("decoding starts at the first four bytes of a KV payload, at 0 where there are fewer", () => {
  expect(protocol.kvStartPosition(Uint8Array.of(1, 2, 3, 4, 5))).toBe(0x04030201);
  expect(protocol.kvStartPosition(Uint8Array.of(255, 255, 255, 255))).toBe(2 ** 32 - 1);
  for (let length = 0; length < 4; length++) expect(protocol.kvStartPosition(new Uint8Array(length).fill(9))).toBe(0);
});

describe("an error message", () => {
  const roundTrip = (text: string) =>
    protocol.decodeError(protocol.encodeError({ requestId: 2n ** 64n - 1n, code: 3, text }));

  test("has its request, its code and its text, in this order", () => {
    const bytes = protocol.encodeError({ requestId: 1n, code: 2, text: "ä" });
    expect(hexOf(bytes)).toBe("010000000000000002000000c3a4");
    expect(roundTrip("too large")).toEqual({ requestId: 2n ** 64n - 1n, code: 3, text: "too large" });
    expect(roundTrip("").text).toBe("");
  });

  test("keeps a byte order mark, which belongs to the text", () => {
    expect(roundTrip("\uFEFFx").text).toBe("\uFEFFx");
  });

  test("cuts a text that is too long between two characters", () => {
    const most = protocol.ERROR_TEXT_BYTES_MAX;
    expect(roundTrip("x".repeat(most)).text).toHaveLength(most);
    expect(roundTrip("x".repeat(most + 1)).text).toHaveLength(most);
    expect(roundTrip(`x${"ä".repeat(most)}`).text).toBe(`x${"ä".repeat((most - 2) / 2)}`);
    expect(roundTrip("😀".repeat(most)).text).toBe("😀".repeat(most / 4));
  });

  test("is refused when it is shorter than its fields or longer than it may be", () => {
    const most = 12 + protocol.ERROR_TEXT_BYTES_MAX;
    for (const length of [...Array(12).keys(), most + 1, 10 * most]) {
      expect(() => protocol.decodeError(new Uint8Array(length))).toThrow(ProtocolError);
    }
    for (const length of [12, most])
      expect(protocol.decodeError(new Uint8Array(length)).text).toHaveLength(length - 12);
  });

  test("is read though its text is no UTF-8", () => {
    const bytes = protocol.encodeError({ requestId: 5n, code: 1, text: "abc" });
    bytes[12] = 0xff;
    expect(protocol.decodeError(bytes)).toEqual({ requestId: 5n, code: 1, text: "\uFFFDbc" });
  });
});

test("whatever the bytes are, a decoder answers or throws a ProtocolError", () => {
  const decoders = [
    ...Object.values(codecs).map(({ decode }) => decode),
    protocol.decodeError,
    protocol.decodePromptTokens,
  ];
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(decoders.length - 1), (bytes, index) => {
      try {
        (decoders[index] as (bytes: Uint8Array) => unknown)(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
        expect(error).toBeInstanceOf(KvrouteError);
      }
    }),
    { numRuns: scaled(5_000) },
  );
});

test("whatever the fields are, a message decodes to what was encoded", () => {
  const u32 = fc.nat(2 ** 32 - 1);
  const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  const i64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const kinds = { u32, u64, i64, bool8: fc.boolean() };
  for (const { name, fields } of wire.messages.filter(({ size }) => size !== null)) {
    const own = fields.filter((field) => field.name !== "pad" && field.name !== "zero");
    const record = Object.fromEntries(
      own.map((field) => [field.name, kinds[field.type as keyof typeof kinds] as fc.Arbitrary<unknown>]),
    );
    fc.assert(
      fc.property(fc.record(record), (values) => {
        expect(codecOf(name).decode(codecOf(name).encode(values))).toEqual(values);
      }),
      { numRuns: scaled(200) },
    );
  }
});
