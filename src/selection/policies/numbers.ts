import { describe } from "../../core/describe.js";
import { OptionError } from "../../errors.js";

/** What an option can multiply a term of a cost by at most: more would only drown the others in rounding. */
export const OPTION_WEIGHT_MAX = 1_000_000;

/** Checks an option of a policy that weighs a term of its cost. */
export function weightOption(name: string, value: number): number {
  return numberOption(name, value, 0, OPTION_WEIGHT_MAX);
}

/** Checks an option that is a whole number in a range. */
export function countOption(name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  throw new OptionError(`Expected ${name} to be a whole number from ${least} to ${most}, got ${shown(value)}.`);
}

/** Checks an option that is a number in a range. */
export function numberOption(name: string, value: unknown, least: number, most: number): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new OptionError(`Expected ${name} to be a number from ${least} to ${most}, got ${shown(value)}.`);
}

/** Checks options that belong together. */
export function objectOption(name: string, value: unknown): void {
  if (typeof value === "object" && value !== null) return;
  throw new OptionError(`Expected ${name} to be an object, got ${describe(value)}.`);
}

/** Checks an option that is a time, or another number above 0. `Infinity` is allowed. */
export function positiveOption(name: string, value: number): number {
  if (typeof value === "number" && value > 0) return value;
  throw new OptionError(`Expected ${name} to be above 0, got ${shown(value)}.`);
}

/** Finds the lower median of the first `count` numbers, and sorts them; 0 if there are none. */
export function lowerMedian(numbers: Float64Array, count: number): number {
  if (count === 0) return 0;
  const sorted = numbers.subarray(0, count).sort();
  return sorted[(count - 1) >>> 1] as number;
}

/** Says what an option was, whatever it was: not everything can be made a text. */
function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : describe(value);
}
