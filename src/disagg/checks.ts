import { ArgumentRangeError, ArgumentTypeError } from "../errors.js";

export const U32_MAX = 2 ** 32 - 1;
const U64_MAX = 2n ** 64n - 1n;
const I64_MIN = -(2n ** 63n);
const I64_MAX = 2n ** 63n - 1n;

/** Checks a whole number from `least` to `most`. */
export function checkWhole(value: unknown, name: string, most: number, least = 0): number {
  if (typeof value !== "number")
    throw new ArgumentTypeError(`Expected ${name} to be a number, got a value of type ${typeof value}.`);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new ArgumentRangeError(`Expected ${name} to be a whole number from ${least} to ${most}, got ${value}.`);
}

/** Checks the number of a worker or router. */
export function checkRank(rank: unknown): number {
  return checkWhole(rank, "a rank", U32_MAX);
}

export function checkU32(value: unknown, name: string): number {
  return checkWhole(value, name, U32_MAX);
}

export function checkU64(value: unknown, name: string): bigint {
  return checkBigint(value, name, 0n, U64_MAX);
}

export function checkI64(value: unknown, name: string): bigint {
  return checkBigint(value, name, I64_MIN, I64_MAX);
}

function checkBigint(value: unknown, name: string, least: bigint, most: bigint): bigint {
  if (typeof value !== "bigint")
    throw new ArgumentTypeError(`Expected ${name} to be a bigint, got a value of type ${typeof value}.`);
  if (value >= least && value <= most) return value;
  throw new ArgumentRangeError(`Expected ${name} to be from ${least} to ${most}, got ${value}.`);
}
