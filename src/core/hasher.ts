import { CoreInstance } from "./instance.js";
import { ResultSlab } from "./slab.js";

/** The hashes of the full blocks of an input, first to last. */
export interface TokenHashes {
  /** The hash of each block by itself. */
  readonly local: BigUint64Array;
  /** The hash of each block and of all that stands before it. */
  readonly sequence: BigUint64Array;
}

// The words that cross: the seed, the sequence hash to continue from, local hashes, sequence hashes.
const SEED = 0;
const PARENT = 1;
const LOCAL = 2;

/** Up to here reading hashes one by one beats making a view to copy from. */
const LOOP_MAX = 8;

let shared: Hasher | undefined;

/** The instance that all hashes come from, made when it is first asked for. */
export function hasher(): Hasher {
  shared ??= new Hasher();
  return shared;
}

/**
 * An instance of the core that hashes what stands in its window, a fixed part of its memory, which never grows. Between
 * calls it keeps only the state of a long input, from the first `part` to `end`.
 */
export class Hasher {
  readonly #core = new CoreInstance({});
  /** Where inputs cross, as bytes. */
  readonly window: Uint8Array<ArrayBuffer>;
  readonly #blocksMax: number;
  readonly #words: BigUint64Array<ArrayBuffer>;
  // Apart, so that who keeps sequence hashes does not keep the local ones of others with them.
  readonly #locals = new ResultSlab();
  readonly #sequences = new ResultSlab();
  readonly #encoder = new TextEncoder();

  constructor() {
    const { exports } = this.#core;
    const { buffer } = exports.memory;
    this.window = new Uint8Array(buffer, exports.hashWindow(), exports.hashWindowBytes());
    this.#blocksMax = exports.hashBlocksMax();
    this.#words = new BigUint64Array(buffer, exports.hashWords(), LOCAL + 2 * this.#blocksMax);
  }

  /** Counts the bytes of memory that the core takes. */
  get memoryBytes(): number {
    return this.#core.exports.memory.buffer.byteLength;
  }

  /** Counts the blocks of so many bytes that may cross at once. */
  blocksAtOnce(blockBytes: number): number {
    return Math.min(this.#blocksMax, Math.floor(this.window.length / blockBytes));
  }

  /** Writes text as UTF-8 to the window, from `start` up to `end` at most. Writes characters whole or not at all. */
  encode(text: string, start: number, end: number): { read: number; written: number } {
    return this.#encoder.encodeInto(text, this.window.subarray(start, end));
  }

  /** Hashes the blocks in the window, in a chain that continues from `parent`. `take` copies the hashes out. */
  blocks(count: number, blockBytes: number, seed: bigint, parent: bigint | undefined): void {
    this.#words[SEED] = seed;
    if (parent !== undefined) this.#words[PARENT] = parent;
    try {
      this.#core.exports.hashBlocks(count, blockBytes, parent === undefined ? 0 : 1);
    } catch (trap) {
      throw this.#stop(trap);
    }
  }

  /** Makes room for so many hashes of either kind, or of the sequence alone. */
  room(count: number, withLocal = true): TokenHashes {
    return { local: this.#locals.hashes(withLocal ? count : 0), sequence: this.#sequences.hashes(count) };
  }

  /** Copies the hashes of the last `count` blocks that were hashed, to an index on; local ones where there is room. */
  take(hashes: TokenHashes, index: number, count: number): void {
    if (hashes.local.length > 0) this.#copy(hashes.local, index, LOCAL, count);
    this.#copy(hashes.sequence, index, LOCAL + this.#blocksMax, count);
  }

  #copy(to: BigUint64Array, index: number, word: number, count: number): void {
    if (count > LOOP_MAX) {
      to.set(this.#words.subarray(word, word + count), index);
      return;
    }
    for (let i = 0; i < count; i++) to[index + i] = this.#words[word + i] as bigint;
  }

  /** Hashes the first bytes of the window as a whole. */
  whole(bytes: number, seed: bigint): bigint {
    this.blocks(1, bytes, seed, undefined);
    return this.#words[LOCAL] as bigint;
  }

  /** Takes the full window as a part of an input that goes on behind it. */
  part(first: boolean, seed: bigint): void {
    this.#words[SEED] = seed;
    try {
      this.#core.exports.hashPart(first ? 1 : 0);
    } catch (trap) {
      throw this.#stop(trap);
    }
  }

  /** Hashes all parts and the first bytes of the window, one or more, as a whole. */
  end(bytes: number): bigint {
    try {
      this.#core.exports.hashEnd(bytes);
    } catch (trap) {
      throw this.#stop(trap);
    }
    return this.#words[LOCAL] as bigint;
  }

  // A trap leaves the instance in an unknown state: the next hash comes from a new one.
  #stop(trap: unknown): unknown {
    if (shared === this) shared = undefined;
    return this.#core.panic(trap);
  }
}
