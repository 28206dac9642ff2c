/** A window of time in which the work of the workers is compared. */
export const WINDOW_MS = 60_000;

/** Compares how much each worker was given within windows of a minute: fleets that are even in the long run may not be then. */
export class Windows {
  readonly #blocks: Float64Array;
  #endMs: number | undefined;
  #windows = 0;
  #sum = 0;

  constructor(workers: number) {
    this.#blocks = new Float64Array(workers);
  }

  /** Counts blocks that a worker has to compute, at a time that never goes back. The first one starts the first window. */
  add(worker: number, blocks: number, nowMs: number): void {
    this.#endMs ??= nowMs + WINDOW_MS;
    if (nowMs >= this.#endMs) {
      this.#close();
      this.#endMs += Math.floor((nowMs - this.#endMs) / WINDOW_MS + 1) * WINDOW_MS;
    }
    this.#blocks[worker] = (this.#blocks[worker] as number) + blocks;
  }

  /** The blocks of the busiest worker over the mean, averaged over the windows in which there were any; 1 without one. */
  imbalance(): number {
    this.#close();
    return this.#windows === 0 ? 1 : this.#sum / this.#windows;
  }

  #close(): void {
    const blocks = this.#blocks;
    let total = 0;
    let most = 0;
    for (const worker of blocks) {
      total += worker;
      if (worker > most) most = worker;
    }
    if (total === 0) return;
    this.#windows++;
    this.#sum += most / (total / blocks.length);
    blocks.fill(0);
  }
}
