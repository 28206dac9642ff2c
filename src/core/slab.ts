import { WORD_BYTES } from "../abi.js";

const SLAB_WORDS = 2_048;
/** Longer results get a buffer of their own: a few of them would use a slab up. */
const SHARED_MAX = SLAB_WORDS / 8;
/** Up to 64 bytes V8 keeps the contents of a typed array in its own heap, where they cost no more than a view. */
const INLINE_MAX = 64 / WORD_BYTES;

/**
 * Hands out results as views of one larger buffer, as Node does for small Buffers: a typed array with a buffer of its
 * own, even an empty one, costs V8 about 300 ns, a view 20 ns. No two results overlap. A buffer lives as long as any of
 * its results, and goes with all of them when a caller transfers one to another thread.
 */
export class ResultSlab {
  #buffer = new ArrayBuffer(0);
  #used = 0;

  /** Makes an array for so many copy ids. */
  ids(count: number): Float64Array<ArrayBuffer> {
    if (!isShared(count)) return new Float64Array(count);
    const offset = this.#take(count);
    return new Float64Array(this.#buffer, offset, count);
  }

  /** Makes an array for so many hashes. */
  hashes(count: number): BigUint64Array<ArrayBuffer> {
    if (!isShared(count)) return new BigUint64Array(count);
    const offset = this.#take(count);
    return new BigUint64Array(this.#buffer, offset, count);
  }

  // The byte offset of so many words that nobody has. A buffer that was transferred away is empty.
  #take(count: number): number {
    if (this.#buffer.byteLength === 0 || this.#used + count > SLAB_WORDS) {
      this.#buffer = new ArrayBuffer(SLAB_WORDS * WORD_BYTES);
      this.#used = 0;
    }
    const offset = this.#used * WORD_BYTES;
    this.#used += count;
    return offset;
  }
}

function isShared(count: number): boolean {
  return count === 0 || (count > INLINE_MAX && count <= SHARED_MAX);
}
