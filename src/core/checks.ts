import { ArgumentRangeError, ArgumentTypeError } from "../errors.js";
import { describe } from "./describe.js";

/** Checks that a value is a number. */
export function checkNumber(value: unknown, what: string): asserts value is number {
  if (typeof value !== "number") {
    throw new ArgumentTypeError(`Expected ${what} to be a number, got ${describe(value)}.`);
  }
}

/** Checks a whole number in a range. */
export function checkWhole(value: unknown, what: string, least: number, most: number): asserts value is number {
  checkNumber(value, what);
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new ArgumentRangeError(`Expected ${what} to be a whole number from ${least} to ${most}, got ${value}.`);
}

export function checkObject(value: unknown, what: string): asserts value is object {
  if (typeof value === "object" && value !== null) return;
  throw new ArgumentTypeError(`Expected ${what} to be an object, got ${describe(value)}.`);
}

export function checkText(text: unknown, what: string): asserts text is string {
  if (typeof text !== "string") throw new ArgumentTypeError(`Expected ${what} to be a string, got ${describe(text)}.`);
}
