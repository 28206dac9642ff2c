/** Bytes of one slab: with lists of 32 ids, one `ArrayBuffer` in 64 answers. */
const SLAB_BYTES = 16_384;

/**
 * Hands out typed arrays cut from shared slabs.
 *
 * A typed array of more than 64 bytes lives outside V8's heap: a fresh one is a `calloc`, a backing store and a
 * finaliser, measured at 0.3 to 3 us for 32 numbers, while a view on a slab that exists takes 12 ns. Both baselines
 * answer through this class, so that neither is slow for a reason that has nothing to do with its data structure.
 */
export class Outputs {
  /** The slab as words, for the writer of a list. */
  words = new Int32Array(0);
  /** The slab as doubles, for the writer of a list. */
  doubles = new Float64Array(0);
  /** The slab as bigints, for the writer of a list. */
  bigints = new BigUint64Array(0);
  #slab = new ArrayBuffer(0);
  #end = 0;

  /** Sets room for `length` elements of 8 bytes aside and returns the position of the first. */
  open(length: number): number {
    if ((this.#end + length) * 8 > this.#slab.byteLength) this.#renew(length * 8);
    return this.#end;
  }

  /** Takes the `length` doubles that were written from `start`. */
  takeDoubles(start: number, length: number): Float64Array {
    this.#end = start + length;
    return new Float64Array(this.#slab, start * 8, length);
  }

  /** Takes the `length` bigints that were written from `start`. */
  takeBigints(start: number, length: number): BigUint64Array {
    this.#end = start + length;
    return new BigUint64Array(this.#slab, start * 8, length);
  }

  #renew(bytes: number): void {
    this.#slab = new ArrayBuffer(Math.max(SLAB_BYTES, bytes));
    this.words = new Int32Array(this.#slab);
    this.doubles = new Float64Array(this.#slab);
    this.bigints = new BigUint64Array(this.#slab);
    this.#end = 0;
  }
}
