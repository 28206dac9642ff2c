import type { StopSignal } from "./stop.js";

/**
 * Listens to an `AbortSignal` once for all who listen here. Callers share one among many requests, and Node warns of a signal to
 * which more than ten listen.
 */
class SharedSignal implements StopSignal {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get aborted(): boolean {
    return this.#signal.aborted;
  }

  get reason(): unknown {
    return this.#signal.reason;
  }

  throwIfAborted(): void {
    this.#signal.throwIfAborted();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#signal.aborted) return;
    if (this.#listeners.size === 0) this.#signal.addEventListener("abort", this.#tell);
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#signal.removeEventListener("abort", this.#tell);
  }

  readonly #tell = (): void => {
    // Who is taken off by one that is told before is not told, as with any signal.
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener();
    this.#listeners.clear();
  };
}

const shared = /* @__PURE__ */ new WeakMap<AbortSignal, SharedSignal>();

/** Gives the one place at which all listen to a signal. */
export function sharedSignal(signal: AbortSignal): StopSignal {
  let one = shared.get(signal);
  if (one === undefined) {
    one = new SharedSignal(signal);
    shared.set(signal, one);
  }
  return one;
}
