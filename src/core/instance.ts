import { module as coreModule, instantiate } from "#core";
import { BATCH_MAX, PAGE_BYTES, PAGES_MAX, Panic, Status } from "../abi.js";
import {
  ArgumentRangeError,
  ArgumentTypeError,
  CorePanicError,
  CoreUnavailableError,
  type KvrouteError,
  MemoryLimitError,
} from "../errors.js";
import { checkNumber } from "./checks.js";
import { describe } from "./describe.js";
import type { CoreExports } from "./exports.js";
import type { CopyIds, Hashes } from "./keys.js";
import { ResultSlab } from "./slab.js";

const HASH_MAX = 0xffff_ffff_ffff_ffffn;

/** Up to here copying doubles one by one beats making a view to copy from. */
const LOOP_MAX = 64;

/**
 * One instance of the core and its scratch page. Arguments are written to the page and results are read from it in
 * words of eight bytes, which hold a hash or a copy id each.
 */
export class CoreInstance {
  readonly exports: CoreExports;
  readonly maxMemoryBytes: number;
  /** The scratch page as hashes. */
  hashes: BigUint64Array<ArrayBuffer>;
  /** The scratch page as copy ids. */
  ids: Float64Array<ArrayBuffer>;
  /** The scratch page as halves of words. */
  halves: Int32Array<ArrayBuffer>;

  /** Makes the error for a trap in a call that the instance makes by itself. */
  onTrap: (trap: unknown) => KvrouteError = (trap) => this.panic(trap);

  #layouts = 0;
  readonly #results = new ResultSlab();

  constructor(options: { maxMemoryBytes?: number | undefined; module?: WebAssembly.Module | undefined }) {
    this.maxMemoryBytes = memoryLimit(options.maxMemoryBytes);
    this.exports = load(options.module);
    this.hashes = new BigUint64Array(this.exports.memory.buffer, 0, 0);
    this.ids = new Float64Array(this.exports.memory.buffer, 0, 0);
    this.halves = new Int32Array(this.exports.memory.buffer, 0, 0);
  }

  get pagesMax(): number {
    return Math.floor(this.maxMemoryBytes / PAGE_BYTES);
  }

  /** Makes the views anew where a call that can grow has moved the page or detached them. */
  refresh(): void {
    const layouts = this.exports.layoutCount();
    if (layouts === this.#layouts) return;
    this.#layouts = layouts;
    const { memory } = this.exports;
    const address = this.exports.scratchAddress();
    const words = this.exports.scratchWords();
    this.hashes = new BigUint64Array(memory.buffer, address, words);
    this.ids = new Float64Array(memory.buffer, address, words);
    this.halves = new Int32Array(memory.buffer, address, 2 * words);
  }

  /** Makes room for so many words, or throws and changes nothing. */
  ensure(words: number): void {
    if (words <= this.ids.length) return;
    if (words > 2 * BATCH_MAX) throw new ArgumentRangeError(`Expected a batch of at most ${BATCH_MAX}, got ${words}.`);
    let status: number;
    try {
      status = -this.exports.makeScratch(words);
    } catch (trap) {
      throw this.onTrap(trap);
    }
    if (status !== Status.Ok) throw this.memoryError();
    this.refresh();
  }

  /** Writes hashes to the page from a word on. They are checked one by one where a `BigUint64Array` has not done so. */
  putHashes(hashes: Hashes, from: number, what: string): void {
    this.ensure(from + lengthOf(hashes, what));
    if (hashes instanceof BigUint64Array) {
      if (hashes.length > 0) this.hashes.set(hashes, from); // `set` refuses a detached array, which holds nothing
      return;
    }
    for (let index = 0; index < hashes.length; index++) {
      const hash = hashes[index];
      if (!isHash(hash)) throw hashError(hash, `${what}[${index}]`);
      this.hashes[from + index] = hash;
    }
  }

  /** Writes one hash to a word of the page. */
  putHash(hash: unknown, word: number, what: string): void {
    if (!isHash(hash)) throw hashError(hash, what);
    this.hashes[word] = hash;
  }

  /** Writes copy ids to the page from its first word on. Any number may stand there: the core knows its copies. */
  putIds(ids: CopyIds): void {
    this.ensure(lengthOf(ids, "ids"));
    if (!(ids instanceof Float64Array)) {
      for (let index = 0; index < ids.length; index++) {
        if (typeof ids[index] !== "number") throw idError(ids[index], `ids[${index}]`);
      }
    }
    if (ids.length > 0) this.ids.set(ids); // `set` refuses a detached array, which holds nothing
  }

  /** Writes one copy id to the first word of the page. */
  putId(id: unknown): void {
    if (typeof id !== "number") throw idError(id, "id");
    this.ids[0] = id;
  }

  /** Copies ids from the first words of the page into an array for a caller. */
  takeIds(count: number): Float64Array {
    const taken = this.#results.ids(count);
    if (count <= LOOP_MAX) {
      const { ids } = this;
      for (let index = 0; index < count; index++) taken[index] = ids[index] as number;
    } else {
      taken.set(this.ids.subarray(0, count));
    }
    return taken;
  }

  /** Copies pinned slots from the first words of the page: the lower half of each. */
  takePins(count: number): number[] {
    const { halves } = this;
    const taken = new Array<number>(count);
    for (let index = 0; index < count; index++) taken[index] = halves[2 * index] as number;
    return taken;
  }

  /** Writes pinned slots to the first words of the page. */
  putPins(pins: readonly number[]): void {
    const { halves } = this;
    for (let index = 0; index < pins.length; index++) halves[2 * index] = pins[index] as number;
  }

  /** Copies hashes from the page into an array for a caller. */
  takeHashes(from: number, count: number): BigUint64Array {
    const taken = this.#results.hashes(count);
    if (count > 0) taken.set(this.hashes.subarray(from, from + count));
    return taken;
  }

  /** The error for a growth that was refused. */
  memoryError(cause?: unknown): MemoryLimitError {
    return new MemoryLimitError(this.exports.pagesWanted() * PAGE_BYTES, this.maxMemoryBytes, { cause });
  }

  /** The error for a trap: the core has left the reason behind. */
  panic(cause: unknown): CorePanicError {
    const reason = this.exports.panicCode();
    const place = reason === Panic.Assertion ? `${this.#fileName()}:${this.exports.panicLine()}` : "";
    return new CorePanicError(reason, place, cause);
  }

  // AssemblyScript keeps the length of a string, in bytes of UTF-16, in the four bytes before it.
  #fileName(): string {
    const address = this.exports.panicFile();
    const view = new DataView(this.exports.memory.buffer);
    const length = view.getUint32(address - 4, true);
    return new TextDecoder("utf-16le").decode(new Uint8Array(this.exports.memory.buffer, address, length));
  }
}

function load(module: WebAssembly.Module | undefined): CoreExports {
  try {
    return instantiate(module ?? coreModule()).exports as unknown as CoreExports;
  } catch (cause) {
    throw new CoreUnavailableError(cause);
  }
}

function memoryLimit(bytes: number | undefined): number {
  const most = PAGES_MAX * PAGE_BYTES;
  if (bytes === undefined) return most;
  checkNumber(bytes, "maxMemoryBytes");
  if (!(bytes >= PAGE_BYTES)) {
    throw new ArgumentRangeError(`Expected maxMemoryBytes to be at least ${PAGE_BYTES} bytes, one page, got ${bytes}.`);
  }
  return Math.min(bytes, most);
}

/** The length of a batch that a caller passed, or a typed error where it is none. */
export function lengthOf(list: Hashes | CopyIds, what: string): number {
  if (Array.isArray(list) || (ArrayBuffer.isView(list) && "length" in list)) return list.length;
  const kind = what === "ids" ? "numbers or a Float64Array" : "bigints or a BigUint64Array";
  throw new ArgumentTypeError(`Expected ${what} to be a list of ${kind}, got ${describe(list)}.`);
}

function isHash(hash: unknown): hash is bigint {
  return typeof hash === "bigint" && hash >= 0n && hash <= HASH_MAX;
}

function hashError(hash: unknown, what: string): ArgumentTypeError | ArgumentRangeError {
  return typeof hash === "bigint"
    ? new ArgumentRangeError(`Expected ${what} to be from 0 to ${HASH_MAX}, got ${hash}.`)
    : new ArgumentTypeError(`Expected ${what} to be a bigint, a hash of 64 bits, got ${describe(hash)}.`);
}

function idError(id: unknown, what: string): ArgumentTypeError {
  return new ArgumentTypeError(`Expected ${what} to be a number, the id of a copy, got ${describe(id)}.`);
}
