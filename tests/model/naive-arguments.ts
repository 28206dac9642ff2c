import { KvrouteError } from "../../src/errors.js";

/** An error of the naive pool: the code of the real one, and the index where a list is concerned. */
export class ModelError extends KvrouteError {
  constructor(
    what: string,
    readonly index?: number,
  ) {
    super(`KVROUTE_${what}`, what);
  }
}

export function fail(what: string, index?: number): never {
  throw new ModelError(what, index);
}

export function checkHash(hash: unknown): bigint {
  if (typeof hash !== "bigint") fail("ARGUMENT_TYPE");
  if (hash < 0n || hash >= 1n << 64n) fail("ARGUMENT_RANGE");
  return hash;
}

export function checkHashes(hashes: unknown): bigint[] {
  if (!Array.isArray(hashes) && !(hashes instanceof BigUint64Array)) fail("ARGUMENT_TYPE");
  return Array.from(hashes, checkHash);
}

export function checkCount(count: unknown): number {
  if (typeof count !== "number") fail("ARGUMENT_TYPE");
  if (!Number.isInteger(count) || count < 0) fail("ARGUMENT_RANGE");
  return count;
}

export function checkId(id: unknown): number {
  return typeof id === "number" ? id : fail("ARGUMENT_TYPE");
}

export function checkIds(ids: unknown): number[] {
  if (!Array.isArray(ids) && !(ids instanceof Float64Array)) fail("ARGUMENT_TYPE");
  return Array.from(ids, checkId);
}

export function checkCapacity(capacity: number): number {
  return Number.isInteger(capacity) && capacity >= 1 && capacity < 2 ** 24 ? capacity : fail("CAPACITY");
}
