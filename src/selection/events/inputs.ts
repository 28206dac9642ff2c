import { describe } from "../../core/describe.js";
import type { WorkerWithDpRank } from "../../core/keys.js";
import { workerKey } from "../../core/worker-key.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import { checkNumber, checkObject, checkWhole } from "../cache/checks.js";
import { DP_RANK_MAX } from "./decode.js";
import type { KvEvent } from "./event.js";

/** Gives a whole number of at least `min` and at most `max`. */
export function checkCount(name: string, value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number {
  checkWhole(value, name, min, max);
  return value;
}

/** Gives the number of a message, from either kind of integer. */
export function checkSeq(seq: unknown): number {
  return checkCount("seq", typeof seq === "bigint" ? Number(seq) : seq, 0);
}

/** Checks the time of a batch, which may be left out. */
export function checkSeconds(ts: unknown): void {
  if (ts === undefined) return;
  checkNumber(ts, "ts");
  if (!Number.isFinite(ts)) throw new ArgumentRangeError(`Expected ts to be a finite number of seconds, got ${ts}.`);
}

/** Checks a function that may be left out. */
export function checkFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function") throw typeError(name, "a function", value);
}

/** Gives a worker by the name that it has in maps. */
export function checkWorker(worker: unknown): WorkerWithDpRank {
  if (typeof worker !== "object" || worker === null || !("workerId" in worker) || !("dpRank" in worker)) {
    throw typeError("worker", "an object with workerId and dpRank", worker);
  }
  return { workerId: workerKey(worker.workerId), dpRank: checkCount("dpRank", worker.dpRank, 0, DP_RANK_MAX) };
}

/** Checks events for what would stop them halfway: a caller may have made them without the decoder. */
export function checkEvents(events: unknown): void {
  checkList("events", events).forEach((event, at) => {
    checkObject(event, `events[${at}]`);
    checkEvent(`events[${at}]`, event);
  });
}

type Unchecked = { readonly [field in keyof (KvEvent & { type: "stored" })]?: unknown };

function checkEvent(name: string, event: Unchecked & { readonly type?: unknown }): void {
  const { type, blockHashes, medium, groupIdx } = event;
  if (type === "cleared") return;
  if (type !== "stored" && type !== "removed") {
    throw typeError(`${name}.type`, '"stored", "removed" or "cleared"', type);
  }
  checkList(`${name}.blockHashes`, blockHashes).forEach((hash, at) => {
    if (!isHash(hash)) throw typeError(`${name}.blockHashes[${at}]`, "a bigint or a string", hash);
  });
  if (medium !== null && typeof medium !== "string") throw typeError(`${name}.medium`, "a string or null", medium);
  if (groupIdx !== null) checkCount(`${name}.groupIdx`, groupIdx, 0);
  if (type === "stored") checkStored(name, event);
}

function checkStored(name: string, event: Unchecked): void {
  const { parentBlockHash, tokenIds, blockSize, loraName, cacheSalt, textBlocks } = event;
  if (parentBlockHash !== null && !isHash(parentBlockHash)) {
    throw typeError(`${name}.parentBlockHash`, "a bigint, a string or null", parentBlockHash);
  }
  if (!(tokenIds instanceof Uint32Array)) throw typeError(`${name}.tokenIds`, "a Uint32Array", tokenIds);
  checkCount(`${name}.blockSize`, blockSize, 0);
  for (const [field, text] of Object.entries({ loraName, cacheSalt })) {
    const isText = text === undefined || text === null || typeof text === "string";
    if (!isText) throw typeError(`${name}.${field}`, "a string or null", text);
  }
  if (textBlocks !== undefined) checkCount(`${name}.textBlocks`, textBlocks, 0);
}

function checkList(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw typeError(name, "a list", value);
}

function isHash(value: unknown): boolean {
  return typeof value === "bigint" || typeof value === "string";
}

function typeError(name: string, expected: string, value: unknown): ArgumentTypeError {
  return new ArgumentTypeError(`Expected ${name} to be ${expected}, got ${describe(value)}.`);
}
