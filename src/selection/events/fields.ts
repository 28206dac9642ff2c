import { describe } from "../../core/describe.js";
import { KvEventError } from "../../errors.js";
import type { EngineHash } from "./event.js";

/** The fields of an event by the names of the tagged form, whichever form it came in. */
export interface EventFields {
  readonly block_hashes?: unknown;
  readonly parent_block_hash?: unknown;
  readonly token_ids?: unknown;
  readonly block_size?: unknown;
  readonly lora_id?: unknown;
  readonly medium?: unknown;
  readonly lora_name?: unknown;
  readonly extra_keys?: unknown;
  readonly cache_salt?: unknown;
  readonly block_mm_infos?: unknown;
  readonly group_idx?: unknown;
  readonly kv_cache_spec_kind?: unknown;
  readonly kv_cache_spec_sliding_window?: unknown;
  readonly locality?: unknown;
}

/** The longest hash in bytes: engines send 32 at most. */
const HASH_BYTES_MAX = 64;
const I64_MIN = -(2n ** 63n);
const U64_MAX = 2n ** 64n - 1n;

/** Reads a list of hashes. */
export function readHashes(value: unknown, field: string): EngineHash[] {
  return readList(value, field).map((item, at) => readHash(item, `${field}[${at}]`));
}

/** Reads a hash. A double that is a whole number up to 2^53 - 1 passes as one: the wire does not tell them apart for sure. */
export function readHash(value: unknown, field: string): EngineHash {
  if (typeof value === "bigint" && value >= I64_MIN && value <= U64_MAX) return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (value instanceof Uint8Array && value.length >= 1 && value.length <= HASH_BYTES_MAX) return hexOf(value);
  throw fieldError(field, `a 64-bit integer or 1 to ${HASH_BYTES_MAX} bytes`, value);
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Writes bytes down in one piece: V8 keeps a text that grew by additions as the tree of them, ten times as large. */
function hexOf(bytes: Uint8Array): EngineHash {
  return `0x${Array.from(bytes, (byte) => HEX[byte]).join("")}`;
}

/** Reads token ids; of the pairs that engines with a draft model send, the first of each is the token. */
export function readTokens(value: unknown, field: string): Uint32Array {
  const items = readList(value, field);
  const tokens = new Uint32Array(items.length);
  items.forEach((item, at) => {
    const token: unknown = Array.isArray(item) && item.length === 2 ? item[0] : item;
    tokens[at] = readCount(token, `${field}[${at}]`, 0, 0xffff_ffff);
  });
  return tokens;
}

/** Reads a whole number from `min` to `max`. */
export function readCount(value: unknown, field: string, min: number, max: number): number {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max) return number;
  throw fieldError(field, `a whole number from ${min} to ${max}`, value);
}

/** Reads a whole number of at least 0, or nothing. */
export function readOptionalCount(value: unknown, field: string): number | null {
  return value === undefined || value === null ? null : readCount(value, field, 0, Number.MAX_SAFE_INTEGER);
}

/** Reads a text, or nothing. */
export function readOptionalText(value: unknown, field: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  throw fieldError(field, "a text", value);
}

/** Reads a list. */
export function readList(value: unknown, field: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw fieldError(field, "a list", value);
}

/** Tells whether a decoded value is a map. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Makes the error of a field that is missing or has a wrong value. */
export function fieldError(field: string, expected: string, value: unknown): KvEventError {
  const got = value === undefined ? "nothing" : shorten(describe(value));
  return new KvEventError("KVROUTE_KV_EVENT_FIELD", `Expected field "${field}" to be ${expected}, got ${got}.`, {
    field,
  });
}

/** A payload may hold megabytes of text; a message quotes its beginning. */
function shorten(text: string): string {
  return text.length > QUOTE_MAX ? `${text.slice(0, QUOTE_MAX)}…` : text;
}

const QUOTE_MAX = 80;
