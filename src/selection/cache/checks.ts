import { checkNumber } from "../../core/checks.js";
import { describe } from "../../core/describe.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";

export { checkNumber, checkObject, checkText, checkWhole } from "../../core/checks.js";

/** Checks a limit of the options: a number, 0 or more. `Infinity` is no limit. */
export function checkLimit(limit: unknown, name: string): number {
  checkNumber(limit, name);
  if (!(limit >= 0)) throw new ArgumentRangeError(`Expected ${name} to be 0 or more, got ${limit}.`);
  return limit;
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
