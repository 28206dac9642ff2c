/** Delays of requests in milliseconds. */
export interface DelaySummary {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

const STEPS_PER_OCTAVE = 1024;
const OCTAVES = 50;
const EXPONENT_MIN = -10; // below 2^-10 ms nothing is told apart, and nothing above 2^40 ms, which is 34 years

/**
 * Counts delays in steps that grow with them, so that it takes the same memory for any number of them: a quantile is off
 * by at most one part in 2,048. The mean is exact.
 */
export class Delays {
  readonly #counts = new Uint32Array(OCTAVES * STEPS_PER_OCTAVE);
  readonly #bits = new DataView(new ArrayBuffer(8));
  #count = 0;
  #sum = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  /** @param delayMs 0 or more */
  add(delayMs: number): void {
    const step = this.#stepOf(delayMs);
    this.#counts[step] = (this.#counts[step] as number) + 1;
    this.#count++;
    this.#sum += delayMs;
    if (delayMs < this.#least) this.#least = delayMs;
    if (delayMs > this.#most) this.#most = delayMs;
  }

  /** All zero if there were none. */
  summary(): DelaySummary {
    const mean = this.#count === 0 ? 0 : this.#sum / this.#count;
    return { mean, p50: this.#quantile(0.5), p90: this.#quantile(0.9), p99: this.#quantile(0.99) };
  }

  /** Finds the delay that a part of all do not exceed. */
  #quantile(part: number): number {
    if (this.#count === 0) return 0;
    const rank = Math.ceil(part * this.#count);
    let step = 0;
    for (let passed = this.#counts[0] as number; passed < rank; passed += this.#counts[step] as number) step++;
    return Math.min(Math.max(this.#middleOf(step), this.#least), this.#most);
  }

  /** The exponent of a number and the first ten bits of its fraction are its step. */
  #stepOf(delayMs: number): number {
    this.#bits.setFloat64(0, delayMs);
    const step = (this.#bits.getUint32(0) >>> 10) - (1023 + EXPONENT_MIN) * STEPS_PER_OCTAVE;
    return Math.min(Math.max(step, 0), this.#counts.length - 1);
  }

  #middleOf(step: number): number {
    this.#bits.setUint32(0, ((step + (1023 + EXPONENT_MIN) * STEPS_PER_OCTAVE) << 10) + 512);
    this.#bits.setUint32(4, 0);
    return this.#bits.getFloat64(0);
  }
}
