import type { Clock } from "../clock.js";

/** Rings once when its time has come. It has a timer while it is set, and none otherwise. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #timer: unknown;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Sets it to a time, in the place of the one that it was set to. `Infinity` is never. */
  set(atMs: number): void {
    if (atMs === this.#atMs) return;
    if (this.#atMs !== Number.POSITIVE_INFINITY) this.#clock.clearTimeout(this.#timer);
    this.#atMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#atMs = Number.POSITIVE_INFINITY;
        this.#ring();
      },
      Math.max(0, atMs - this.#clock.now()),
    );
  }
}
