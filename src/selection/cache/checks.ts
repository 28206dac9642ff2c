import { describe } from "../../core/describe.js";
import { checkNumber } from "../../core/prefix-options.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";

export { checkNumber };

/** Checks a limit of the options: a number, 0 or more. `Infinity` is no limit. */
export function checkLimit(limit: unknown, name: string): number {
  checkNumber(limit, name);
  if (!(limit >= 0)) throw new ArgumentRangeError(`Expected ${name} to be 0 or more, got ${limit}.`);
  return limit;
}

export function checkObject(value: unknown, name: string): asserts value is object {
  if (typeof value === "object" && value !== null) return;
  throw new ArgumentTypeError(`Expected ${name} to be an object, got ${describe(value)}.`);
}

export function checkText(text: unknown, name: string): void {
  if (typeof text !== "string") throw new ArgumentTypeError(`Expected ${name} to be a string, got ${describe(text)}.`);
}

/** Checks a whole number in a range. */
export function checkWhole(value: unknown, name: string, least: number, most: number): asserts value is number {
  checkNumber(value, name);
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new ArgumentRangeError(`Expected ${name} to be a whole number from ${least} to ${most}, got ${value}.`);
}

export function checkTime(timeMs: number, name: string): void {
  checkNumber(timeMs, name);
  if (!Number.isFinite(timeMs)) {
    throw new ArgumentRangeError(`Expected ${name} to be a finite number of milliseconds, got ${timeMs}.`);
  }
}

/** Checks for the typed array itself: a list would have to be checked hash by hash, and copied. */
export function checkHashes(hashes: unknown, name: string): void {
  if (hashes instanceof BigUint64Array) return;
  const isObject = typeof hashes === "object" && hashes !== null;
  const got = isObject ? `an object of ${hashes.constructor?.name ?? "no class"}` : describe(hashes); // which list it is
  throw new ArgumentTypeError(`Expected ${name} to be a BigUint64Array, got ${got}.`);
}
