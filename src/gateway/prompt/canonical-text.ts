import { hashName } from "../../core/hash-stream.js";
import { hasher } from "../../core/hasher.js";
import { hashTextSequence, xxh3 } from "../../core/token-hash.js";
import { jsonOf } from "./body.js";

// The text of a prompt that is hashed. Marks of two bytes structure it: 0xff, which UTF-8 never has, and a letter. So no
// text can imitate a mark, and two prompts have the same text only if they are the same.

const MARK = 0xff;

/** What follows a mark. */
export const Mark = {
  document: 0x6f, // o: what is to be drawn upon, as JSON
  tool: 0x74, // t: a tool's name
  description: 0x64, // d: what a tool does
  schema: 0x73, // s: its parameters, as JSON
  extra: 0x78, // x: its other fields, or those of a message, as JSON
  message: 0x6d, // m: a role
  content: 0x63, // c: what the role says, and the first text right behind
  part: 0x70, // p: a further text
  reasoning: 0x72, // r
  media: 0x69, // i: what it is, as JSON
  value: 0x6a, // j: what should be text, or a part of another kind, as JSON
  call: 0x66, // f: the id of a tool call
  name: 0x6e, // n: the name of the tool it calls
  json: 0x61, // a: the arguments, as JSON
  raw: 0x41, // A: arguments that are not JSON
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
/** Takes a block of the largest size, and what is added at once behind it. */
const PIECE_BYTES = 65_536;
/** Units of a text that are hashed at once: in UTF-8 they fit the window of the hasher. */
const HASHED_AT_ONCE = 8_192;

const encoder = /* @__PURE__ */ new TextEncoder();

export interface CanonicalTextOptions {
  readonly blockBytes: number;
  /** The hash that the first block continues from. */
  readonly root: bigint;
  /** What comes behind so many bytes is dropped. */
  readonly maxBytes: number;
}

/** The piece of the last text that was finished: memory that is new costs more than the hashing of a short one. */
let spare: Uint8Array | undefined;

function takePiece(): Uint8Array {
  const piece = spare ?? new Uint8Array(PIECE_BYTES);
  spare = undefined;
  return piece;
}

/**
 * Hashes the canonical text of a prompt as it is written, in UTF-8 between marks: only a piece of it is held.
 */
export class CanonicalText {
  readonly #options: CanonicalTextOptions;
  readonly #piece = takePiece();
  /** Bytes of the piece that are written; the hashed ones are gone. */
  #filled = 0;
  #hashedBytes = 0;
  readonly #hashes: BigUint64Array[] = [];
  #last: bigint;
  #opening: bigint | undefined;
  /** Where in the piece the opening ends, until it is hashed. */
  #openingEnd: number | undefined;

  constructor(options: CanonicalTextOptions) {
    this.#options = options;
    this.#last = options.root;
  }

  get length(): number {
    return Math.min(this.#hashedBytes + this.#filled, this.#options.maxBytes);
  }

  /** Whether the limit is reached, so that nothing more is taken. */
  get isFull(): boolean {
    return this.#hashedBytes + this.#filled >= this.#options.maxBytes;
  }

  /** Says that what a conversation keeps ends here. Only the first call counts. */
  endOpening(): void {
    if (this.#opening === undefined) this.#openingEnd ??= this.#filled;
  }

  /** Hashes the full blocks, and all up to the end of the opening. Nothing can be added afterwards. */
  finish(): { readonly sequence: BigUint64Array; readonly opening: bigint } {
    this.endOpening();
    this.#hashPiece();
    spare = this.#piece;
    const sequence = join(this.#hashes);
    const most = Math.floor(this.#options.maxBytes / this.#options.blockBytes);
    return {
      sequence: sequence.length > most ? sequence.subarray(0, most) : sequence,
      opening: this.#opening as bigint,
    };
  }

  mark(mark: MarkOf): void {
    if (!this.#makeRoom(2)) return;
    this.#piece[this.#filled++] = MARK;
    this.#piece[this.#filled++] = mark;
  }

  /** Adds text. A lone surrogate counts as U+FFFD. */
  text(text: string): void {
    if (text.length <= SHORT_MAX && this.#shortText(text)) return;
    for (let rest = text; rest.length > 0 && !this.isFull; ) {
      const { read, written } = encoder.encodeInto(rest, this.#piece.subarray(this.#filled));
      this.#filled += written;
      rest = rest.slice(read);
      if (rest.length > 0) this.#hashPiece();
    }
  }

  /** Adds a field behind its mark: text as it is, anything else as JSON behind a further mark. */
  field(mark: MarkOf, value: unknown): void {
    this.mark(mark);
    if (typeof value !== "string") this.mark(Mark.value);
    this.text(typeof value === "string" ? value : jsonOf(value));
  }

  /** Adds tokens, each from 0 to `TOKEN_MAX`. */
  tokens(tokens: readonly number[]): void {
    this.mark(Mark.tokens);
    for (let at = 0; at < tokens.length && this.#makeRoom(TOKEN_BYTES); ) {
      const room = Math.floor((PIECE_BYTES - this.#filled) / TOKEN_BYTES);
      const end = Math.min(tokens.length, at + room);
      this.#words(tokens, at, end);
      at = end;
    }
    if (this.#makeRoom(TOKEN_BYTES)) this.#words([NO_TOKEN], 0, 1);
  }

  /** Adds something that is not text by its hash, as long as such things are in a prompt. */
  media(content: string): void {
    this.mark(Mark.hash);
    if (!this.#makeRoom(MEDIA_BYTES)) return;
    const words = new DataView(this.#piece.buffer, this.#filled, MEDIA_BYTES);
    const hash = hashWholeText(content);
    for (let at = 0; at < MEDIA_BYTES; at += WORD_BYTES) words.setBigUint64(at, hash, true);
    this.#filled += MEDIA_BYTES;
  }

  #words(words: readonly number[], start: number, end: number): void {
    const view = new DataView(this.#piece.buffer, this.#filled);
    for (let i = start; i < end; i++) view.setUint32(TOKEN_BYTES * (i - start), words[i] as number, true);
    this.#filled += TOKEN_BYTES * (end - start);
  }

  #shortText(text: string): boolean {
    if (!this.#makeRoom(text.length)) return true;
    let at = this.#filled;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 0x7f) return false;
      this.#piece[at++] = unit;
    }
    this.#filled = at;
    return true;
  }

  /** Makes room for so many bytes, fewer than a piece has behind a block. Returns false if the limit is reached. */
  #makeRoom(bytes: number): boolean {
    if (this.isFull) return false;
    if (this.#filled + bytes > PIECE_BYTES) this.#hashPiece();
    return true;
  }

  /** Hashes the full blocks of the piece, and the opening if it ends in there, and moves what is left to the front. */
  #hashPiece(): void {
    const { blockBytes } = this.#options;
    const filled = this.#piece.subarray(0, this.#filled);
    const sequence = hashTextSequence(filled, { blockBytes, parent: this.#last });
    if (this.#openingEnd !== undefined) this.#hashOpening(sequence, this.#openingEnd);
    if (sequence.length === 0) return;
    const bytes = sequence.length * blockBytes;
    this.#hashes.push(sequence);
    this.#last = sequence[sequence.length - 1] as bigint;
    this.#piece.copyWithin(0, bytes, this.#filled);
    this.#filled -= bytes;
    this.#hashedBytes += bytes;
  }

  /** Hashes what of the opening stands behind its last full block, on top of all before. */
  #hashOpening(sequence: BigUint64Array, end: number): void {
    const { blockBytes } = this.#options;
    const blocks = Math.floor(end / blockBytes);
    this.#opening = xxh3(this.#piece.subarray(blocks * blockBytes, end), sequence[blocks - 1] ?? this.#last);
    this.#openingEnd = undefined;
  }
}

/** Hashes a text as a whole, under a seed, part by part. */
export function hashWholeText(text: string, seed = 0n): bigint {
  if (text.length <= HASHED_AT_ONCE) return hashName(hasher(), text, seed);
  let hash = seed;
  for (let at = 0; at < text.length; at += HASHED_AT_ONCE) {
    hash = hashName(hasher(), text.slice(at, at + HASHED_AT_ONCE), hash);
  }
  return hash;
}

function join(parts: readonly BigUint64Array[]): BigUint64Array {
  if (parts.length === 1) return parts[0] as BigUint64Array;
  const all = new BigUint64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let done = 0;
  for (const part of parts) {
    all.set(part, done);
    done += part.length;
  }
  return all;
}
