/** What tells that work is no longer wanted. An `AbortSignal` is one. */
export interface StopSignal {
  readonly aborted: boolean;
  /** What is told those who wait. */
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Stops work, once. An `AbortController` does the same, but Node keeps an `AbortSignal` with a listener alive beyond the next
 * collection: one for each request made every collection take ten times as long.
 */
export class Stop implements StopSignal {
  #listeners: (() => void)[] = [];
  #isAborted = false;
  #reason: unknown;

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.#isAborted && !this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  /** Tells all who listen, in the order in which they came. The first reason counts. */
  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** Waits for a promise, or for the first of the signals, with whose reason it rejects. */
export function abortable<T>(promise: Promise<T>, ...signals: readonly (StopSignal | undefined)[]): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signals.find((signal) => signal?.aborted)?.reason);
    for (const signal of signals) signal?.addEventListener("abort", abort);
    if (signals.some((signal) => signal?.aborted)) abort();
    const end = () => {
      for (const signal of signals) signal?.removeEventListener("abort", abort);
    };
    promise.then(resolve, reject).finally(end);
  });
}
