import { ArgumentRangeError } from "../errors.js";
import { checkNumber, checkWhole } from "./checks.js";

/** How an index is made. */
export interface PrefixIndexOptions {
  /** Entries, (block, worker, rank) each, that the index keeps: 1 to 16,777,215, by default 1,000,000. */
  readonly maxEntries?: number | undefined;
  /** Entries that it keeps of one worker and rank; by default as many as of all. */
  readonly maxEntriesPerWorker?: number | undefined;
  /** Milliseconds for which an entry is valid after it was stored last; above 0. By default for ever. */
  readonly ttlMs?: number | undefined;
  /** Memory that the core may take, in bytes; at least 65,536. By default what WebAssembly can address, 4 GiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** The compiled core, for hosts that refuse to compile synchronously; see `compileCore`. */
  readonly module?: WebAssembly.Module | undefined;
}

/** The most entries of an index: if each has a block of its own, they take 1.7 GB. */
export const ENTRIES_MAX = 16_777_215;
export const ENTRIES_DEFAULT = 1_000_000;

/** Checks the bounds of an index and fills in what is absent; a `ttlMs` of 0 is none. */
export function checkPrefixIndexOptions(options: PrefixIndexOptions): {
  maxEntries: number;
  maxEntriesPerWorker: number;
  ttlMs: number;
} {
  const maxEntries = checkBound(options.maxEntries ?? ENTRIES_DEFAULT, "maxEntries");
  const own = checkBound(options.maxEntriesPerWorker ?? maxEntries, "maxEntriesPerWorker");
  const ttlMs = options.ttlMs === undefined ? 0 : checkTtl(options.ttlMs);
  return { maxEntries, maxEntriesPerWorker: Math.min(maxEntries, own), ttlMs };
}

/** Checks a bound: a whole number from 1 to `most`. */
export function checkBound(bound: unknown, what: string, most = ENTRIES_MAX): number {
  checkWhole(bound, what, 1, most);
  return bound;
}

function checkTtl(ttlMs: unknown): number {
  checkNumber(ttlMs, "ttlMs");
  if (!(ttlMs > 0 && ttlMs < Number.POSITIVE_INFINITY)) {
    throw new ArgumentRangeError(`Expected ttlMs to be a number of milliseconds above 0, got ${ttlMs}.`);
  }
  return ttlMs;
}
