import { once } from "node:events";
import type { CliIo } from "../io.js";

/** What asks a server to stop. */
export interface Stopping {
  /** Aborts when it is to stop, and let requests end. */
  readonly gently: AbortSignal;
  /** Aborts when it is to stop at once. */
  readonly atOnce: AbortSignal;
  /** Resolves when it is to stop. */
  asked(): Promise<void>;
  /** Stops listening to signals. */
  end(): void;
}

/** Listens to signals until `end`: the first asks to stop gently, the second at once. */
export function listenToSignals(io: Pick<CliIo, "onSignal">): Stopping {
  const gently = new AbortController();
  const atOnce = new AbortController();
  const end = io.onSignal(() => (gently.signal.aborted ? atOnce : gently).abort());
  return {
    gently: gently.signal,
    atOnce: atOnce.signal,
    asked: async () => {
      if (!gently.signal.aborted) await once(gently.signal, "abort");
    },
    end,
  };
}
