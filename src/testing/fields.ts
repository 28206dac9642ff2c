import { badRequest } from "./http-error.js";

/** A body of JSON. */
export type Body = Readonly<Record<string, unknown>>;

export function isBody(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a whole number of at least `least`; `undefined` where there is none. */
export function readCount(body: Body, name: string, least: number): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= least) return value;
  throw badRequest(`Expected ${name} to be a whole number, ${least} or more, got ${JSON.stringify(value)}.`);
}

export function readText(body: Body, name: string): string | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw badRequest(`Expected ${name} to be a string, got ${JSON.stringify(value)}.`);
}

export function readObjects(body: Body, name: string): readonly Body[] {
  const value = body[name];
  if (Array.isArray(value) && value.every(isBody)) return value;
  throw badRequest(`Expected ${name} to be a list of objects.`);
}

/** Reads a prompt of the old form: a text, texts, tokens, or lists of tokens. Each gives one list. */
export function readInputs(body: Body, name: string, encode: (text: string) => Uint32Array): readonly Uint32Array[] {
  const value: unknown = body[name];
  if (typeof value === "string") return [notEmpty(name, encode(value))];
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`Expected ${name} to be a string or a list.`);
  if (value.length > INPUTS_MAX && typeof value[0] !== "number") {
    throw badRequest(`Expected at most ${INPUTS_MAX} entries in ${name}, got ${value.length}.`);
  }
  if (isTokens(value)) return [Uint32Array.from(value as number[])];
  return value.map((entry: unknown) => {
    if (typeof entry === "string") return notEmpty(name, encode(entry));
    if (Array.isArray(entry) && isTokens(entry)) return notEmpty(name, Uint32Array.from(entry as number[]));
    throw badRequest(`Expected ${name} to hold strings or lists of tokens.`);
  });
}

/** Entries of a list of prompts, as OpenAI limits them. */
const INPUTS_MAX = 2_048;

function isTokens(value: readonly unknown[]): boolean {
  return value.every((token) => Number.isInteger(token) && (token as number) >= 0 && (token as number) < 2 ** 32);
}

function notEmpty(name: string, tokens: Uint32Array): Uint32Array {
  if (tokens.length > 0) return tokens;
  throw badRequest(`Expected ${name} to hold at least one token, got none.`);
}
