import { describe } from "../../core/describe.js";
import { BodyError } from "../../errors.js";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Levels of lists and objects in a body: some parsers overflow their stack on many. */
export const BODY_DEPTH_MAX = 256;
/** Fields, lists and objects in a body: a parser takes up to a microsecond for each. */
export const BODY_COMPLEXITY_MAX = 262_144;

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Parses a body that must be a JSON object.
 *
 * @throws {BodyError} `KVROUTE_BODY_NOT_JSON` if it is not UTF-8 or not JSON
 * @throws {BodyError} `KVROUTE_BODY_TOO_COMPLEX` if it has more levels than `BODY_DEPTH_MAX`, or more fields, lists and
 *   objects than `BODY_COMPLEXITY_MAX`
 * @throws {BodyError} `KVROUTE_BODY_NOT_OBJECT` if it is another value
 */
export function parseBody(body: Uint8Array): JsonObject {
  return parseText(decode(body));
}

/** Does as `parseBody` for a body that is there as text. */
export function parseText(text: string): JsonObject {
  if (complexityOf(text) > BODY_COMPLEXITY_MAX) throw tooComplex();
  return checkBody(parse(text));
}

/** Checks that a parsed body is an object. */
export function checkBody(value: unknown): JsonObject {
  if (isObject(value)) return value;
  const got = Array.isArray(value) ? "a list" : typeof value === "string" ? "a string" : describe(value);
  throw new BodyError("KVROUTE_BODY_NOT_OBJECT", `Expected the body to be a JSON object, got ${got}.`);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Gives a list as it is, nothing as an empty one, and anything else as a list of it. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** Gives JSON text of a value, the same for the same value with its fields in the same order. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (cause) {
    throw tooComplex(cause); // values of JSON have neither cycles nor bigints
  }
}

/**
 * Counts the fields, lists and objects of JSON text, which are what makes parsing it slow. Infinite if it has more than
 * `BODY_DEPTH_MAX` levels. What stands in its strings does not count.
 */
export function complexityOf(json: string): number {
  let depth = 0;
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(json, at);
    } else if (unit === COLON) {
      count++;
    } else if (unit === OPEN_LIST || unit === OPEN_OBJECT) {
      count++;
      if (++depth > BODY_DEPTH_MAX) return Number.POSITIVE_INFINITY;
    } else if (unit === CLOSE_LIST || unit === CLOSE_OBJECT) {
      depth--;
    }
  }
  return count;
}

/** Finds the quote that ends the string begun at `start`, or the end of the text. */
function endOfString(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); at !== -1; at = json.indexOf('"', at + 1)) {
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}

function decode(body: Uint8Array): string {
  try {
    return decoder.decode(body);
  } catch (cause) {
    throw new BodyError("KVROUTE_BODY_NOT_JSON", "Expected the body to be JSON in UTF-8, got other bytes.", { cause });
  }
}

// What the parser says quotes the body, and prompts do not belong into messages: it stays in the cause.
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const got = text === "" ? "nothing" : `${text.length} characters of something else`;
    throw new BodyError("KVROUTE_BODY_NOT_JSON", `Expected the body to be JSON, got ${got}.`, { cause });
  }
}

function tooComplex(cause?: unknown): BodyError {
  const limits = `${BODY_DEPTH_MAX} levels and ${BODY_COMPLEXITY_MAX} fields, lists and objects`;
  return new BodyError("KVROUTE_BODY_TOO_COMPLEX", `Expected a body of at most ${limits}, got one of more.`, { cause });
}
