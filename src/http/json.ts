import { parse, stringify } from "lossless-json";

/** How deep lists and objects may stand in one another: the parser goes down by one call a level. */
export const DEPTH_MAX = 64;
/** The longest number of 64 bits, in digits with the sign. */
const INTEGER_LENGTH_MAX = 20;

/**
 * Parses JSON without losing digits: an integer that a number cannot hold becomes a bigint. A key that stands twice in an
 * object with different values is refused.
 *
 * @throws {SyntaxError} if the text is no JSON, or is nested too deep
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new SyntaxError(`It is nested deeper than ${DEPTH_MAX} levels`);
  return parse(text, undefined, { parseNumber });
}

/** Prints JSON with bigints as integers. Fields that are undefined are left out. */
export function printJson(value: unknown): string {
  return stringify(value) ?? "null";
}

function parseNumber(text: string): number | bigint {
  const number = Number(text);
  if (Number.isSafeInteger(number) || text.length > INTEGER_LENGTH_MAX) return number; // beyond 64 bits nobody needs digits
  return /^-?\d+$/.test(text) ? BigInt(text) : number;
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"') isInString = !isInString;
    else if (isInString) at += character === "\\" ? 1 : 0;
    else if (character === "[" || character === "{") depth++;
    else if (character === "]" || character === "}") depth--;
    if (depth > DEPTH_MAX) return true;
  }
  return false;
}
