import { OptionError } from "../../errors.js";

/** @throws {OptionError} `KVROUTE_OPTION` unless the value of an option is a whole number in its range */
export function checkLimit(option: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new OptionError(`Expected ${option} to be a whole number from ${least} to ${most}, got ${String(value)}.`);
}
