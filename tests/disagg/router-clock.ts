import type { Clock } from "../../src/clock.js";

interface Timer {
  readonly id: number;
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on, and goes from timer to timer. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #ids = 0;
  /** By id; the earliest is looked for by time, then by id. */
  readonly #timers = new Map<number, Timer>();

  readonly now = (): number => this.#nowMs;

  readonly setTimeout = (callback: () => void, delayMs: number): unknown => {
    const id = ++this.#ids;
    this.#timers.set(id, { id, atMs: this.#nowMs + Math.max(0, delayMs), callback });
    return id;
  };

  readonly clearTimeout = (id: unknown): void => {
    this.#timers.delete(id as number);
  };

  /** Timers that are set: what is left of them shows who has forgotten his. */
  get timers(): number {
    return this.#timers.size;
  }

  delay(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.setTimeout(resolve, delayMs));
  }

  /** Lets time pass, timer by timer, with everything that follows from each before the next. */
  async pass(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs;
    await quiet();
    while (this.#fireNext(endMs)) await quiet();
    this.#nowMs = endMs;
  }

  /** Lets as much time pass as a promise needs to settle. Fails if it waits for something else than time. */
  async settled<T>(promise: Promise<T>): Promise<PromiseSettledResult<T>> {
    let result: PromiseSettledResult<T> | undefined;
    promise.then(
      (value) => {
        result = { status: "fulfilled", value };
      },
      (reason: unknown) => {
        result = { status: "rejected", reason };
      },
    );
    await quiet();
    while (result === undefined) {
      if (!this.#fireNext(Number.POSITIVE_INFINITY)) throw new Error("It waits for something that no timer brings.");
      await quiet();
    }
    return result;
  }

  /** The value of a promise, after as much time as it needs. */
  async value<T>(promise: Promise<T>): Promise<T> {
    const result = await this.settled(promise);
    if (result.status === "rejected") throw result.reason;
    return result.value;
  }

  /** Why a promise fails, after as much time as it needs. */
  async reason(promise: Promise<unknown>): Promise<unknown> {
    const result = await this.settled(promise);
    if (result.status === "fulfilled") throw new Error("It was expected to fail, and did not.");
    return result.reason;
  }

  /** Fires the timers of the next moment that has some; `false` if there is none until `endMs`. */
  #fireNext(endMs: number): boolean {
    let atMs = Number.POSITIVE_INFINITY;
    for (const timer of this.#timers.values()) atMs = Math.min(atMs, timer.atMs);
    if (atMs > endMs || atMs === Number.POSITIVE_INFINITY) return false;
    this.#nowMs = Math.max(this.#nowMs, atMs);
    const due = [...this.#timers.values()].filter((timer) => timer.atMs <= atMs); // in order of setting
    for (const timer of due) if (this.#timers.delete(timer.id)) timer.callback();
    return true;
  }
}

/** Waits until no promise is left that could go on by itself. */
export function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
