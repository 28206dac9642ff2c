import { OptionError } from "../errors.js";

/** How many values lie where, as they stood. */
export interface HistogramSnapshot {
  /** Upper ends of the buckets, each belonging to its bucket, in ascending order. */
  readonly bounds: readonly number[];
  /** Values in each bucket alone, one bucket more than bounds: the last has what lies above all. */
  readonly counts: readonly number[];
  readonly sum: number;
  readonly count: number;
}

// Seconds, as the metrics of Prometheus have them.

/** What the router adds to a request. */
export const ROUTING_BOUNDS: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
];
/** From a request to the first byte of its answer. */
export const TTFT_BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
];
/** From one token of output to the next. */
export const INTER_TOKEN_BOUNDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
/** A request from end to end, and its time in the queue. */
export const REQUEST_BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** Buckets that a histogram may have. */
export const BOUNDS_MAX = 256;

/** Counts values by buckets whose bounds stay the same. */
export class Histogram {
  readonly #bounds: Float64Array;
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  /**
   * Makes a histogram in which nothing is counted.
   *
   * @param bounds 1 to 256 finite numbers, each larger than the one before
   * @throws {OptionError} `KVROUTE_OPTION` if they are not that
   */
  constructor(bounds: readonly number[]) {
    const isAscending = bounds.every(
      (bound, at) => Number.isFinite(bound) && (at === 0 || bound > Number(bounds[at - 1])),
    );
    if (bounds.length < 1 || bounds.length > BOUNDS_MAX || !isAscending) {
      throw new OptionError(
        `Expected bounds to be 1 to ${BOUNDS_MAX} finite numbers that ascend, got ${bounds.length}.`,
      );
    }
    this.#bounds = Float64Array.from(bounds);
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /**
   * Counts a value, as often as `times` says. A negative one counts as 0: the clock was set back. What is no finite number is
   * not counted.
   */
  observe(value: number, times = 1): void {
    if (!Number.isFinite(value)) return;
    const counted = Math.max(value, 0);
    this.#sum += counted * times;
    this.#count += times;
    const bucket = this.#bucketOf(counted);
    this.#counts[bucket] = (this.#counts[bucket] as number) + times;
  }

  snapshot(): HistogramSnapshot {
    return { bounds: [...this.#bounds], counts: [...this.#counts], sum: this.#sum, count: this.#count };
  }

  /** The first bucket whose bound is not below the value. */
  #bucketOf(value: number): number {
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#bounds[middle] as number) < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
