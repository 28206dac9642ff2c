/** The clock behind `recentTokens`: what was given a while ago is worth less. */
export class RecentClock {
  readonly #memoryMs: number;
  #nowMs = 0;

  /** @param memoryMs after this time work counts 1/e of what it did */
  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Sets the time. It never goes back. */
  advance(nowMs: number): void {
    if (nowMs > this.#nowMs) this.#nowMs = nowMs;
  }

  /** What a token that was given at a time is worth now, 0 to 1. */
  worth(sinceMs: number): number {
    return sinceMs === this.#nowMs ? 1 : Math.exp((sinceMs - this.#nowMs) / this.#memoryMs);
  }
}
