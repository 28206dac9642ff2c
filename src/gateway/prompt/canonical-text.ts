import { hashName } from "../../core/hash-stream.js";
import { hasher } from "../../core/hasher.js";
import { jsonOf } from "./body.js";

// The text of a prompt that is hashed. Marks of two bytes structure it: 0xff, which UTF-8 never has, and a letter. So no
// text can imitate a mark, and two prompts have the same text only if they are the same.

const MARK = 0xff;

/** What follows a mark. */
export const Mark = {
  tool: 0x74, // t: a tool's name
  description: 0x64, // d: what a tool does
  schema: 0x73, // s: its parameters, as JSON
  extra: 0x78, // x: its other fields, or those of a message, as JSON
  message: 0x6d, // m: a role
  content: 0x63, // c: what the role says, and the first text right behind
  part: 0x70, // p: a further text
  reasoning: 0x72, // r
  media: 0x69, // i: what it is, as JSON
  value: 0x6a, // j: a part of another kind, as JSON
  call: 0x66, // f: the id of a tool call
  name: 0x6e, // n: the name of the tool it calls
  json: 0x61, // a: the arguments, as JSON
  raw: 0x41, // A: arguments that are not JSON
  end: 0x65, // e: the end of a message
  prompt: 0x71, // q: a text without messages
  tokens: 0x6b, // k: tokens, four bytes each, up to a last one that is none
  hash: 0x68, // h: the hash of an image or the like, again and again
  suffix: 0x75, // u: what stands behind the gap to be filled
} as const;

export type MarkOf = (typeof Mark)[keyof typeof Mark];

/** Canonical text of an image or the like: what some 256 tokens take, the least that models spend on one. */
export const MEDIA_BYTES = 1_024;
const WORD_BYTES = 8;

const TOKEN_BYTES = 4;
/** The largest token. The number behind it ends a run of tokens. */
export const TOKEN_MAX = 0xffff_fffe;
const NO_TOKEN = 0xffff_ffff;

/** Up to so many units a loop beats the encoder. */
const SHORT_MAX = 24;
const SPARE_BYTES = 1_024;

const encoder = /* @__PURE__ */ new TextEncoder();

/** Collects the canonical text of a prompt, in UTF-8 between marks, up to a limit. What comes after is dropped. */
export class CanonicalText {
  readonly #maxBytes: number;
  #bytes: Uint8Array;
  #length = 0;
  #isFull = false;

  constructor(maxBytes: number, expectedBytes: number) {
    this.#maxBytes = maxBytes;
    this.#bytes = new Uint8Array(Math.min(maxBytes, expectedBytes + SPARE_BYTES));
  }

  get length(): number {
    return this.#length;
  }

  /** Whether the limit is reached, so that nothing more is taken. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** The text so far, or its first `length` bytes. */
  bytes(length = this.#length): Uint8Array {
    return this.#bytes.subarray(0, length);
  }

  mark(mark: MarkOf): void {
    if (!this.#makeRoom(2)) return;
    this.#bytes[this.#length++] = MARK;
    this.#bytes[this.#length++] = mark;
  }

  /** Adds text. A lone surrogate counts as U+FFFD. */
  text(text: string): void {
    if (text.length <= SHORT_MAX && this.#shortText(text)) return;
    for (let rest = text; rest.length > 0 && !this.#isFull; ) {
      this.#reserve(rest.length);
      const { read, written } = encoder.encodeInto(rest, this.#bytes.subarray(this.#length));
      this.#length += written;
      if (read < rest.length && this.#bytes.length === this.#maxBytes) this.#isFull = true;
      rest = rest.slice(read);
    }
  }

  json(value: unknown): void {
    this.text(jsonOf(value));
  }

  /** Adds tokens, each from 0 to `TOKEN_MAX`. */
  tokens(tokens: readonly number[]): void {
    this.mark(Mark.tokens);
    const count = Math.min(tokens.length, Math.floor(this.#maxBytes / TOKEN_BYTES));
    this.#reserve(TOKEN_BYTES * (count + 1));
    for (let i = 0; i < count && !this.#isFull; i++) this.#word(tokens[i] as number);
    this.#word(NO_TOKEN);
  }

  /** Adds something that is not text by its hash, as long as such things are in a prompt. */
  media(content: string): void {
    this.mark(Mark.hash);
    if (!this.#makeRoom(MEDIA_BYTES)) return;
    const words = new DataView(this.#bytes.buffer, this.#length, MEDIA_BYTES);
    const hash = hashText64(content);
    for (let at = 0; at < MEDIA_BYTES; at += WORD_BYTES) words.setBigUint64(at, hash, true);
    this.#length += MEDIA_BYTES;
  }

  #word(word: number): void {
    if (!this.#makeRoom(TOKEN_BYTES)) return;
    for (let byte = 0; byte < TOKEN_BYTES; byte++) this.#bytes[this.#length++] = word >>> (8 * byte);
  }

  #shortText(text: string): boolean {
    if (!this.#makeRoom(text.length)) return true;
    let at = this.#length;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 0x7f) return false;
      this.#bytes[at++] = unit;
    }
    this.#length = at;
    return true;
  }

  /** Makes room for something that is added whole or not at all. */
  #makeRoom(bytes: number): boolean {
    if (this.#isFull) return false;
    this.#reserve(bytes);
    this.#isFull = this.#bytes.length - this.#length < bytes;
    return !this.#isFull;
  }

  /** Grows by doubling, to have room for so many bytes and one more character, as far as the limit allows. */
  #reserve(bytes: number): void {
    const wanted = this.#length + bytes + 3;
    if (wanted <= this.#bytes.length || this.#bytes.length === this.#maxBytes) return;
    const grown = new Uint8Array(Math.min(this.#maxBytes, Math.max(wanted, 2 * this.#bytes.length)));
    grown.set(this.bytes());
    this.#bytes = grown;
  }
}

/** Hashes a text as a whole, under a seed. */
export function hashText64(text: string, seed = 0n): bigint {
  return hashName(hasher(), text, seed);
}
