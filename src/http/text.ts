import { describe } from "../core/describe.js";

/** What is quoted of a request in an error, in UTF-16 units. */
const QUOTED_MAX = 120;

/** Cuts a text off that is too long to be quoted. */
export function clipped(text: string): string {
  return text.length <= QUOTED_MAX ? text : `${text.slice(0, QUOTED_MAX)}…`;
}

/** Says in an error what a field holds. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "bigint") return `the number ${value}`;
  return clipped(describe(value));
}

/** Writes the path of a field as one would in a program, such as `token_ids[3]`. */
export function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the body";
  return path.map((key, at) => (at === 0 ? String(key) : step(key))).join("");
}

function step(key: PropertyKey): string {
  if (typeof key === "number") return `[${key}]`;
  const name = String(key);
  return /^[A-Za-z_]\w*$/.test(name) && name === clipped(name) ? `.${name}` : `[${clipped(JSON.stringify(name))}]`;
}
