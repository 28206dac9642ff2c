import type { EndSignal } from "./closing.js";

/**
 * Aborts with either of two signals, as `AbortSignal.any` does, which not every runtime has. It holds on to neither: they
 * know of it only while somebody listens.
 */
export class EitherSignal {
  readonly #signals: readonly [EndSignal, EndSignal];

  constructor(first: EndSignal, second: EndSignal) {
    this.#signals = [first, second];
  }

  get aborted(): boolean {
    return this.#signals.some((signal) => signal.aborted);
  }

  get reason(): unknown {
    return this.#signals.find((signal) => signal.aborted)?.reason;
  }

  throwIfAborted(): void {
    for (const signal of this.#signals) signal.throwIfAborted();
  }

  /** Has a listener told, once for each of the two that aborts, until it is taken off. */
  listen(onAbort: () => void): void {
    for (const signal of this.#signals) signal.addEventListener("abort", onAbort);
  }

  unlisten(onAbort: () => void): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", onAbort);
  }
}
