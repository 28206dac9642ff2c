import { describe, expect, test } from "vitest";
import { hashText, hashTokens, xxh3 } from "../../../src/core/token-hash.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../../src/errors.js";

const tokens = Uint32Array.of(1, 2, 3, 4);
const bytes = Uint8Array.of(1, 2, 3, 4);
const size = "Expected blockSize to be a whole number from 1 to 4096, got";
const textSize = "Expected blockBytes to be a whole number from 4 to 16384, got";
const word = "to be from 0 to 18446744073709551615, got";

// What TypeScript would refuse as well is passed as a program without types would.
const any = (value: unknown) => value as never;

const outside: [string, () => unknown, string][] = [
  ["a block size of 0", () => hashTokens(tokens, { blockSize: 0 }), `${size} 0.`],
  ["a block size above 4,096", () => hashTokens(tokens, { blockSize: 4_097 }), `${size} 4097.`],
  ["half a token", () => hashTokens(tokens, { blockSize: 1.5 }), `${size} 1.5.`],
  ["a block size that is no number", () => hashTokens(tokens, { blockSize: Number.NaN }), `${size} NaN.`],
  ["blocks of three bytes", () => hashText("", { blockBytes: 3 }), `${textSize} 3.`],
  ["blocks above 16,384 bytes", () => hashText("", { blockBytes: 16_385 }), `${textSize} 16385.`],
  ["a negative parent", () => hashTokens(tokens, { blockSize: 4, parent: -1n }), `Expected parent ${word} -1.`],
  ["a parent of 65 bits", () => hashText("", { parent: 2n ** 64n }), `Expected parent ${word} 18446744073709551616.`],
  ["a negative seed", () => xxh3(bytes, -1n), `Expected seed ${word} -1.`],
  ["a seed of 65 bits", () => xxh3(bytes, 2n ** 64n), `Expected seed ${word} 18446744073709551616.`],
];

const wrong: [string, () => unknown, string][] = [
  [
    "a list of tokens",
    () => hashTokens(any([1, 2]), { blockSize: 1 }),
    "Expected tokens to be a Uint32Array, got [object Array].",
  ],
  [
    "tokens in an Int32Array",
    () => hashTokens(any(new Int32Array(4)), { blockSize: 1 }),
    "Expected tokens to be a Uint32Array, got [object Int32Array].",
  ],
  [
    "something that says it is an array",
    () => hashTokens(any({ [Symbol.toStringTag]: "Uint32Array", length: 4 }), { blockSize: 1 }),
    "Expected tokens to be a Uint32Array, got [object Uint32Array].",
  ],
  [
    "no tokens",
    () => hashTokens(any(undefined), { blockSize: 1 }),
    "Expected tokens to be a Uint32Array, got undefined.",
  ],
  [
    "tokens for a text",
    () => hashText(any(tokens)),
    "Expected text to be a string or a Uint8Array, got [object Uint32Array].",
  ],
  ["a number for a text", () => hashText(any(7)), "Expected text to be a string or a Uint8Array, got the number 7."],
  ["a text for bytes", () => xxh3(any("abc")), 'Expected bytes to be a Uint8Array, got the string "abc".'],
  ["no options", () => hashTokens(tokens, any(undefined)), "Expected options to be an object, got undefined."],
  ["null for options", () => hashText("", any(null)), "Expected options to be an object, got null."],
  ["no block size", () => hashTokens(tokens, any({})), "Expected blockSize to be a number of tokens, got undefined."],
  [
    "a block size in words",
    () => hashTokens(tokens, any({ blockSize: "16" })),
    'Expected blockSize to be a number of tokens, got the string "16".',
  ],
  [
    "null for the default",
    () => hashText("", any({ blockBytes: null })),
    "Expected blockBytes to be a number of bytes, got null.",
  ],
  [
    "a number for a parent",
    () => hashTokens(tokens, any({ blockSize: 4, parent: 5 })),
    "Expected parent to be a bigint of 64 bits, got the number 5.",
  ],
  [
    "a number for an adapter",
    () => hashTokens(tokens, any({ blockSize: 4, loraName: 5 })),
    "Expected loraName to be a string, got the number 5.",
  ],
  ["null for a salt", () => hashText("", any({ cacheSalt: null })), "Expected cacheSalt to be a string, got null."],
  ["a number for a seed", () => xxh3(bytes, any(5)), "Expected seed to be a bigint of 64 bits, got the number 5."],
];

describe("hashTokens, hashText and xxh3 refuse", () => {
  test.each(outside)("%s, which is out of range", (_, call, message) => {
    expect(call).toThrow(ArgumentRangeError);
    expect(call).toThrow(message);
  });

  test.each(wrong)("%s, which is of the wrong type", (_, call, message) => {
    expect(call).toThrow(ArgumentTypeError);
    expect(call).toThrow(message);
  });
});

describe("hashTokens, hashText and xxh3 take", () => {
  test("the limits of their ranges", () => {
    expect(hashTokens(tokens, { blockSize: 1, parent: 0n }).local.length).toBe(4);
    expect(hashTokens(new Uint32Array(4_096), { blockSize: 4_096, parent: 2n ** 64n - 1n }).local.length).toBe(1);
    expect(hashText("abcd", { blockBytes: 4 }).local.length).toBe(1);
    expect(hashText("a".repeat(16_384), { blockBytes: 16_384 }).local.length).toBe(1);
    expect(xxh3(bytes, 2n ** 64n - 1n)).not.toBe(xxh3(bytes, 0n));
  });
});
