import { describe } from "../../core/describe.js";
import type { WorkerId, WorkerWithDpRank } from "../../core/keys.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import { DP_RANK_MAX } from "./decode.js";

/** Gives a whole number of at least `min` and at most `max`. */
export function checkCount(name: string, value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== "number")
    throw new ArgumentTypeError(`Expected ${name} to be a number, got ${describe(value)}.`);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new ArgumentRangeError(`Expected ${name} to be a whole number from ${min} to ${max}, got ${value}.`);
}

/** Gives the number of a message, from either kind of integer. */
export function checkSeq(seq: unknown): number {
  return checkCount("seq", typeof seq === "bigint" ? Number(seq) : seq, 0);
}

/** Gives a worker by the name that it has in maps. */
export function checkWorker(worker: unknown): WorkerWithDpRank {
  if (typeof worker !== "object" || worker === null || !("workerId" in worker) || !("dpRank" in worker)) {
    throw new ArgumentTypeError(`Expected worker to be an object with workerId and dpRank, got ${describe(worker)}.`);
  }
  return { workerId: checkWorkerId(worker.workerId), dpRank: checkCount("dpRank", worker.dpRank, 0, DP_RANK_MAX) };
}

/** Gives a worker's id so that the same worker is the same key: a bigint that a number can say becomes one. */
export function checkWorkerId(id: unknown): WorkerId {
  if (typeof id === "string") return id;
  if (typeof id === "bigint") return id === BigInt(Number(id)) && Number.isSafeInteger(Number(id)) ? Number(id) : id;
  if (typeof id !== "number") {
    throw new ArgumentTypeError(`Expected workerId to be a string, a number or a bigint, got ${describe(id)}.`);
  }
  if (Number.isSafeInteger(id)) return id;
  throw new ArgumentRangeError(`Expected a workerId of type number to be a safe integer, got ${id}.`);
}
