import { ArgumentRangeError, ArgumentTypeError } from "../errors.js";
import { checkObject, checkText, checkWhole } from "./checks.js";
import { describe } from "./describe.js";
import { hashBytes, hashName, hashString, hashWhole } from "./hash-stream.js";
import { hasher, type TokenHashes } from "./hasher.js";
import type { SequenceHash } from "./keys.js";

export type { TokenHashes } from "./hasher.js";

/** What the hashes of a block depend on besides its content. */
export interface HashOptions {
  /** The adapter that the engine applies: its blocks are not those of the base model. Empty: none. */
  readonly loraName?: string | undefined;
  /** Keeps the blocks of one tenant from those of another. Empty: none. */
  readonly cacheSalt?: string | undefined;
  /** The sequence hash of the last full block before the input, which so continues a chain. */
  readonly parent?: SequenceHash | undefined;
}

export interface HashTokensOptions extends HashOptions {
  /** Tokens in a block, as the engine has it: 1 to 4,096. */
  readonly blockSize: number;
}

export interface HashTextOptions extends HashOptions {
  /** Bytes of UTF-8 in a block: 4 to 16,384. */
  readonly blockBytes?: number | undefined;
}

const TOKEN_BYTES = 4;
const BLOCK_SIZE_MAX = 4_096;
const BLOCK_BYTES_MAX = TOKEN_BYTES * BLOCK_SIZE_MAX;
const BLOCK_BYTES_DEFAULT = 256;

/** The seed without adapter and salt, and the seed under which each of the two is hashed. */
const SEED = 1337n;
const LORA_SEED = 0n;
const SALT_SEED = 1n;
const WORD_MAX = 0xffff_ffff_ffff_ffffn;

const NOTHING = new Uint8Array(0);

/**
 * Hashes the full blocks of a prompt, each by itself and with all before it, as Dynamo does: XXH3 of the tokens as
 * 32-bit little-endian integers, chained. A partial last block has no hash.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if an argument has the wrong type
 * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `blockSize` or `parent` is out of range
 */
export function hashTokens(tokens: Uint32Array, options: HashTokensOptions): TokenHashes {
  return hashAll(tokens, options, true);
}

/** Does as `hashTokens`, for callers within the package that need no local hashes. */
export function hashSequence(tokens: Uint32Array, options: HashTokensOptions): BigUint64Array {
  return hashAll(tokens, options, false).sequence;
}

function hashAll(tokens: Uint32Array, options: HashTokensOptions, withLocal: boolean): TokenHashes {
  const bytes = bytesOf(tokens, "Uint32Array", "tokens");
  checkObject(options, "options");
  const blockSize = checkSize(options.blockSize, 1, BLOCK_SIZE_MAX, "blockSize", "tokens");
  const parent = checkParent(options.parent);
  return hashBytes(hasher(), bytes, blockSize * TOKEN_BYTES, seedOf(options), parent, withLocal);
}

/**
 * Hashes the full blocks of a text, in UTF-8, as `hashTokens` does those of a prompt: for routers without a tokeniser.
 * A lone surrogate counts as U+FFFD.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if an argument has the wrong type
 * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `blockBytes` or `parent` is out of range
 */
export function hashText(text: string | Uint8Array, options: HashTextOptions = {}): TokenHashes {
  return hashAllText(text, options, true);
}

/** Does as `hashText`, for callers within the package that need no local hashes. */
export function hashTextSequence(text: Uint8Array, options: HashTextOptions): BigUint64Array {
  return hashAllText(text, options, false).sequence;
}

function hashAllText(text: string | Uint8Array, options: HashTextOptions, withLocal: boolean): TokenHashes {
  const bytes = typeof text === "string" ? undefined : bytesOf(text, "Uint8Array", "text", "a string or ");
  checkObject(options, "options");
  const { blockBytes: wanted = BLOCK_BYTES_DEFAULT } = options;
  const blockBytes = checkSize(wanted, TOKEN_BYTES, BLOCK_BYTES_MAX, "blockBytes", "bytes");
  const parent = checkParent(options.parent);
  const seed = seedOf(options);
  return bytes === undefined
    ? hashString(hasher(), text as string, blockBytes, seed, parent)
    : hashBytes(hasher(), bytes, blockBytes, seed, parent, withLocal);
}

/**
 * Hashes bytes, however many, with XXH3 of 64 bits.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if an argument has the wrong type
 * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if the seed is not from 0 to 2^64 - 1
 */
export function xxh3(bytes: Uint8Array, seed = 0n): bigint {
  const own = bytesOf(bytes, "Uint8Array", "bytes");
  return hashWhole(hasher(), own, checkWord(seed, "seed"));
}

/** The seed of local hashes under an adapter and a salt. */
export function seedOf({ loraName, cacheSalt }: HashOptions): bigint {
  const lora = checkName(loraName, "loraName");
  const salt = checkName(cacheSalt, "cacheSalt");
  if (lora === "" && salt === "") return SEED;
  const loraPart = lora === "" ? 0n : hashName(hasher(), lora, LORA_SEED);
  const saltPart = salt === "" ? 0n : hashName(hasher(), salt, SALT_SEED);
  return BigInt.asUintN(64, SEED + loraPart + saltPart);
}

// A view of the bytes behind an array of the caller's, who may hand in a class of his own or another realm's. An array
// whose buffer was transferred away has no bytes, and no view can be made of it.
function bytesOf(array: unknown, kind: "Uint8Array" | "Uint32Array", what: string, or = ""): Uint8Array {
  if (!ArrayBuffer.isView(array) || (array as Uint8Array)[Symbol.toStringTag] !== kind) {
    throw new ArgumentTypeError(`Expected ${what} to be ${or}a ${kind}, got ${describeArray(array)}.`);
  }
  return array.byteLength === 0 ? NOTHING : new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function describeArray(value: unknown): string {
  return typeof value === "object" && value !== null ? Object.prototype.toString.call(value) : describe(value);
}

function checkSize(size: unknown, least: number, most: number, what: string, unit: string): number {
  if (typeof size !== "number") {
    throw new ArgumentTypeError(`Expected ${what} to be a number of ${unit}, got ${describe(size)}.`);
  }
  checkWhole(size, what, least, most);
  return size;
}

function checkName(name: unknown, what: string): string {
  if (name === undefined) return "";
  checkText(name, what);
  return name;
}

function checkParent(parent: unknown): bigint | undefined {
  return parent === undefined ? undefined : checkWord(parent, "parent");
}

function checkWord(word: unknown, what: string): bigint {
  if (typeof word !== "bigint") {
    throw new ArgumentTypeError(`Expected ${what} to be a bigint of 64 bits, got ${describe(word)}.`);
  }
  if (word >= 0n && word <= WORD_MAX) return word;
  throw new ArgumentRangeError(`Expected ${what} to be from 0 to ${WORD_MAX}, got ${word}.`);
}
