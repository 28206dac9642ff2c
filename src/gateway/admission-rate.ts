/** How long an admission counts: after this time it counts a third. */
export const RATE_MEMORY_MS = 10_000;
/** What a client is told to wait, whatever the rate. */
export const RETRY_AFTER_MS_MIN = 1_000;
export const RETRY_AFTER_MS_MAX = 60_000;

/**
 * Counts admissions, recent ones most, to say how long a number of them will take. Each fades by the factor e in
 * `RATE_MEMORY_MS`. Where there were none of late, the longest time is said.
 */
export class AdmissionRate {
  #count = 0;
  #atMs = 0;
  #sinceMs: number | undefined;

  add(nowMs: number): void {
    this.#sinceMs ??= nowMs;
    this.#fade(nowMs);
    this.#count++;
  }

  /** Says how long so many admissions will take, in whole milliseconds between the two limits. */
  waitMs(admissions: number, nowMs: number): number {
    this.#fade(nowMs);
    // While less than the memory has passed, the count stands for the time since the first.
    const seen = 1 - Math.exp(-Math.max(0, nowMs - (this.#sinceMs ?? nowMs)) / RATE_MEMORY_MS);
    const perMs = this.#count / (RATE_MEMORY_MS * seen);
    const ms = perMs > 0 ? Math.ceil(admissions / perMs) : RETRY_AFTER_MS_MAX;
    return Math.min(Math.max(ms, RETRY_AFTER_MS_MIN), RETRY_AFTER_MS_MAX);
  }

  // A clock that was set back fades nothing.
  #fade(nowMs: number): void {
    const ms = nowMs - this.#atMs;
    if (ms <= 0) return;
    this.#count *= Math.exp(-ms / RATE_MEMORY_MS);
    this.#atMs = nowMs;
  }
}
