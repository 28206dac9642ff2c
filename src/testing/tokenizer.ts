import { mix } from "../sim/engine.js";

// A token is four bytes of UTF-8, little-endian; the last of a text is filled up with zeros. Bytes above 0xf4 do not occur in
// UTF-8, so that no text has a token like these:
const START = 0xffff_ff01;
const END = 0xffff_ff02;

const TOKEN_BYTES = 4;
const encoder = /* @__PURE__ */ new TextEncoder();

/** Cuts a text into tokens of four bytes. */
export function encodeText(text: string): Uint32Array {
  const bytes = encoder.encode(text);
  const padded = new Uint8Array(TOKEN_BYTES * Math.ceil(bytes.length / TOKEN_BYTES));
  padded.set(bytes);
  return new Uint32Array(padded.buffer); // wherever JavaScript runs today, it is little-endian
}

/** Gives the bytes of a token of text; a special token has none. */
export function bytesOfToken(token: number): Uint8Array {
  if (token === START || token === END) return new Uint8Array(0);
  const bytes = [0, 8, 16, 24].map((shift) => (token >>> shift) & 0xff);
  while (bytes.at(-1) === 0) bytes.pop();
  return Uint8Array.from(bytes);
}

/** Begins a message: what follows is what its author says. */
export function openMessage(role: string): Uint32Array {
  return join([Uint32Array.of(START), encodeText(role)]);
}

/** A message as it stands in a prompt. Each begins at a token of its own, so that an answer has its tokens in the next turn, too. */
export function encodeMessage(role: string, parts: readonly string[]): Uint32Array {
  return join([openMessage(role), ...parts.map(encodeText), Uint32Array.of(END)]);
}

/** Puts tokens one behind the other. */
export function join(parts: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const CONSONANTS = "bcdfghjklmnprstvwz";
const VOWELS = "aeiou";

/** Makes a word of an answer up: a space and three letters, which are one token. */
export function wordToken(seed: bigint, index: number): number {
  const bits = mix(seed, index);
  const letter = (letters: string, shift: number) => letters.charCodeAt((bits >>> shift) % letters.length);
  const [first, second, third] = [letter(CONSONANTS, 0), letter(VOWELS, 8), letter(CONSONANTS, 16)];
  return (0x20 | (first << 8) | (second << 16) | (third << 24)) >>> 0;
}
