/** Counts values by the bounds that they lie within, as Prometheus has it. */
export class Histogram {
  /** Upper bounds, rising; a value counts for the first that it does not exceed. */
  readonly bounds: readonly number[];
  /** How many values lie within each bound and above the one before; the last count is of those beyond all. */
  readonly counts: number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const at = this.bounds.findIndex((bound) => value <= bound);
    const place = at < 0 ? this.bounds.length : at;
    this.counts[place] = (this.counts[place] as number) + 1;
    this.sum += value;
    this.count++;
  }
}
