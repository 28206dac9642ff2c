import { TraceError, type TracePlace } from "../errors.js";
import type { RoutingRequest } from "../selection/policy.js";

/** One request of a trace. Lengths and block size are in tokens, in the agent form in characters. */
export interface TraceRequest extends RoutingRequest {
  /** When the request arrived, in milliseconds from the start of the trace. */
  readonly timestampMs: number;
  readonly outputTokens: number;
  /** What lengths are counted in. */
  readonly unit: TraceUnit;
}

export type TraceUnit = "token" | "character";

/** What the rows of a trace are named after, and how much of a prompt one of their hashes stands for. */
interface TraceForm {
  readonly name: string;
  readonly unit: TraceUnit;
  readonly blockTokens: number;
  readonly promptField: string;
  readonly outputField: string;
  readonly needsSession: boolean;
}

interface Row {
  readonly timestamp?: unknown;
  readonly session_id?: unknown;
  readonly hash_ids?: unknown;
  readonly [field: string]: unknown;
}

const MOONCAKE: TraceForm = {
  name: "Mooncake",
  unit: "token",
  blockTokens: 512,
  promptField: "input_length",
  outputField: "output_length",
  needsSession: false,
};

const AGENT: TraceForm = {
  name: "agent",
  unit: "character",
  blockTokens: 256,
  promptField: "input_chars",
  outputField: "output_chars",
  needsSession: true,
};

/** Reads the rows of one trace, all of which have the form of its first valid one. */
export class RowParser {
  readonly #file: string;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #form: TraceForm | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Reads one line.
   *
   * @returns the request, or `null` for a blank line
   * @throws {TraceError} that names file, line and field
   */
  parse(bytes: Uint8Array, line: number): TraceRequest | null {
    const place = { file: this.#file, line };
    const text = this.#decode(bytes, place);
    if (text.trim() === "") return null;
    const row = parseObject(text, place);
    const form = this.#form ?? formOf(row);
    if (form === undefined) throw fieldError(place, MOONCAKE.promptField, `and "${AGENT.promptField}" are missing`);
    if (!Object.hasOwn(row, form.promptField)) throw strangerError(row, form, place);
    const request = parseRequest(row, form, place);
    this.#form = form;
    return request;
  }

  #decode(bytes: Uint8Array, place: TracePlace): string {
    try {
      return this.#decoder.decode(bytes);
    } catch (cause) {
      throw new TraceError("KVROUTE_TRACE_NOT_UTF8", place, "the line is not valid UTF-8", { cause });
    }
  }
}

function formOf(row: Row): TraceForm | undefined {
  return [MOONCAKE, AGENT].find((form) => Object.hasOwn(row, form.promptField));
}

/** Explains why a row does not have the form of the rows before it. */
function strangerError(row: Row, form: TraceForm, place: TracePlace): TraceError {
  const other = formOf(row);
  if (other === undefined) return fieldError(place, form.promptField, "is missing");
  const problem = `expected a row of the ${form.name} form like those before it, got one of the ${other.name} form`;
  return new TraceError("KVROUTE_TRACE_FORM", place, problem);
}

function parseObject(text: string, place: TracePlace): Row {
  const expected = (cause?: unknown): TraceError =>
    new TraceError("KVROUTE_TRACE_NOT_JSON", place, `expected a JSON object, got ${excerpt(text)}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw expected(cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw expected();
  return value as Row;
}

function parseRequest(row: Row, form: TraceForm, place: TracePlace): TraceRequest {
  const request = {
    timestampMs: parseTimestamp(row, place),
    promptTokens: parseCount(row, form.promptField, place),
    outputTokens: parseCount(row, form.outputField, place),
    blockTokens: form.blockTokens,
    unit: form.unit,
    sequenceHashes: parseHashes(row, place),
  };
  const session = row.session_id;
  if (typeof session === "string") return { ...request, session };
  if (form.needsSession) throw wrongField(row, "session_id", "a string", place);
  return request;
}

function parseTimestamp(row: Row, place: TracePlace): number {
  const value = row.timestamp;
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw wrongField(row, "timestamp", "a number of at least 0", place);
}

function parseCount(row: Row, field: string, place: TracePlace): number {
  const value = row[field];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw wrongField(row, field, "a whole number of at least 0", place);
}

function parseHashes(row: Row, place: TracePlace): BigUint64Array {
  const ids = row.hash_ids;
  if (!Array.isArray(ids)) throw wrongField(row, "hash_ids", "a list of whole numbers", place);
  const hashes = new BigUint64Array(ids.length);
  let at = 0;
  for (const id of ids as readonly unknown[]) {
    if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0) {
      const expected = `must hold whole numbers from 0 to ${Number.MAX_SAFE_INTEGER} only`;
      throw fieldError(place, "hash_ids", `${expected}, got ${show(id)} at place ${at + 1}`);
    }
    hashes[at++] = BigInt(id);
  }
  return hashes;
}

function wrongField(row: Row, field: string, expected: string, place: TracePlace): TraceError {
  if (!Object.hasOwn(row, field)) return fieldError(place, field, "is missing");
  return fieldError(place, field, `must be ${expected}, got ${show(row[field])}`);
}

function fieldError(place: TracePlace, field: string, problem: string): TraceError {
  return new TraceError("KVROUTE_TRACE_FIELD", { ...place, field }, problem);
}

/** Writes a value of JSON for an error message. Infinity is a number beyond the range of a double. */
function show(value: unknown): string {
  return typeof value === "number" ? String(value) : excerpt(JSON.stringify(value));
}

/** Shortens a text for an error message and escapes what would break its line. */
function excerpt(text: string): string {
  const short = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  return short.replace(/\p{C}/gu, (character) => JSON.stringify(character).slice(1, -1));
}
