import { describe } from "../../core/describe.js";
import { BodyError } from "../../errors.js";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Levels of lists and objects in a body: a parser takes a microsecond for each, and some overflow their stack. */
export const BODY_DEPTH_MAX = 256;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses a body that must be a JSON object.
 *
 * @throws {BodyError} `KVROUTE_BODY_NOT_JSON` if it is not UTF-8 or not JSON
 * @throws {BodyError} `KVROUTE_BODY_TOO_DEEP` if it has more than `BODY_DEPTH_MAX` levels
 * @throws {BodyError} `KVROUTE_BODY_NOT_OBJECT` if it is another value
 */
export function parseBody(body: Uint8Array): JsonObject {
  const text = decode(body);
  if (!isShallow(text)) throw tooDeep();
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
    throw tooDeep(cause); // values of JSON have neither cycles nor bigints
  }
}

/** Tells whether JSON text has at most `BODY_DEPTH_MAX` levels. What stands in its strings does not count. */
export function isShallow(json: string): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(json, at);
    } else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > BODY_DEPTH_MAX) return false;
    } else if (unit === 0x5d || unit === 0x7d) {
      depth--;
    }
  }
  return true;
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
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
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

function tooDeep(cause?: unknown): BodyError {
  const sentence = `Expected a body of at most ${BODY_DEPTH_MAX} levels of lists and objects, got one that is deeper.`;
  return new BodyError("KVROUTE_BODY_TOO_DEEP", sentence, { cause });
}
