import type { Clock } from "../../clock.js";

/** A moment by which something has to happen. It is put off at every token, so doing that does not touch a timer. */
export class Deadline {
  readonly #clock: Clock;
  readonly #onPassed: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #armedForMs = Number.POSITIVE_INFINITY;
  #timer: unknown;

  constructor(clock: Clock, onPassed: () => void) {
    this.#clock = clock;
    this.#onPassed = onPassed;
  }

  /** Sets the moment, on the clock's scale, in place of the one before. */
  set(atMs: number): void {
    this.#atMs = atMs;
    if (atMs < this.#armedForMs) this.#arm();
  }

  /** Waits for nothing until it is set again. A timer that runs goes on, and finds nothing to do. */
  rest(): void {
    this.#atMs = Number.POSITIVE_INFINITY;
  }

  /** Waits for nothing, and stops the timer. */
  clear(): void {
    this.rest();
    this.#disarm();
  }

  #arm(): void {
    this.#disarm();
    this.#armedForMs = this.#atMs;
    this.#timer = this.#clock.setTimeout(() => this.#fire(), Math.ceil(Math.max(0, this.#atMs - this.#clock.now())));
  }

  #disarm(): void {
    if (this.#armedForMs === Number.POSITIVE_INFINITY) return;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #fire(): void {
    this.#armedForMs = Number.POSITIVE_INFINITY;
    this.#timer = undefined;
    if (this.#atMs === Number.POSITIVE_INFINITY) return;
    if (this.#clock.now() < this.#atMs) {
      this.#arm(); // it was put off
      return;
    }
    this.rest();
    this.#onPassed();
  }
}
