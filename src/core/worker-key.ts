import { ArgumentRangeError, ArgumentTypeError } from "../errors.js";
import { describe } from "./describe.js";

/** What a worker is known by in a map: 1 and 1n are one worker, "1" is another. */
export type WorkerKey = string | number | bigint;

/** Makes the key of a worker: bigints that a number can name are kept as numbers. Throws a typed error for what names no worker. */
export function workerKey(workerId: unknown): WorkerKey {
  if (typeof workerId === "string") return workerId;
  if (typeof workerId === "bigint") {
    const number = Number(workerId);
    return Number.isSafeInteger(number) ? number : workerId;
  }
  if (typeof workerId !== "number") {
    throw new ArgumentTypeError(
      `Expected a workerId that is a string, a number or a bigint, got ${describe(workerId)}.`,
    );
  }
  if (!Number.isSafeInteger(workerId)) {
    throw new ArgumentRangeError(
      `Expected a workerId that is a whole number from -(2^53 - 1) to 2^53 - 1, or a bigint, got ${workerId}.`,
    );
  }
  return workerId;
}

/** Checks a dp rank: a whole number, 0 or more. */
export function checkRank(dpRank: unknown): number {
  if (typeof dpRank !== "number") {
    throw new ArgumentTypeError(`Expected a dpRank that is a number, got ${describe(dpRank)}.`);
  }
  if (!Number.isSafeInteger(dpRank) || dpRank < 0) {
    throw new ArgumentRangeError(`Expected a dpRank that is a whole number, 0 or more, got ${dpRank}.`);
  }
  return dpRank;
}
