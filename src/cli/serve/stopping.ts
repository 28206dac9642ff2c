import type { CliIo } from "../io.js";

/** What asks a server to stop: the first time gently, the second time at once. */
export interface Stopping {
  /** Resolves when it is to stop. */
  readonly asked: Promise<void>;
  /** Aborts when it is to stop at once. */
  readonly now: AbortSignal;
  /** Stops listening to signals. */
  end(): void;
}

/** Listens to signals until `end`. */
export function listenToSignals(io: Pick<CliIo, "onSignal">): Stopping {
  const now = new AbortController();
  let ask: () => void = () => undefined;
  let isAsked = false;
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const end = io.onSignal(() => {
    if (isAsked) now.abort();
    isAsked = true;
    ask();
  });
  return { asked, now: now.signal, end };
}
