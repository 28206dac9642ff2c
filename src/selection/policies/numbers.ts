import { OptionError } from "../../errors.js";

/** Checks an option of a policy that is a finite number, `least` or more. */
export function numberOption(name: string, value: number, least: number): number {
  if (typeof value === "number" && value >= least && value < Number.POSITIVE_INFINITY) return value;
  throw new OptionError(`Expected ${name} to be a finite number of at least ${least}, got ${value}.`);
}

/** Checks an option of a policy that is a whole number in a range. */
export function countOption(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionError(`Expected ${name} to be a whole number from ${least} to ${most}, got ${value}.`);
}

/** Finds the lower median of the first `count` numbers, and sorts them; 0 if there are none. */
export function lowerMedian(numbers: Float64Array, count: number): number {
  if (count === 0) return 0;
  const sorted = numbers.subarray(0, count).sort();
  return sorted[(count - 1) >>> 1] as number;
}
