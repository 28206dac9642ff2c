import type { Clock } from "../clock.js";
import type { StopSignal } from "./stop.js";

/** Waits for a time, or for the first of the signals, with whose reason it rejects. */
export function sleep(clock: Clock, ms: number, ...signals: readonly (StopSignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clock.clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", abort);
      settle();
    };
    const abort = () => end(() => reject(signals.find((signal) => signal?.aborted)?.reason));
    const timer = clock.setTimeout(() => end(resolve), ms);
    for (const signal of signals) signal?.addEventListener("abort", abort);
    if (signals.some((signal) => signal?.aborted)) abort();
  });
}
