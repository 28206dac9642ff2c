import type { StopSignal } from "./stop.js";
import type { Ending } from "./types.js";

/** A request that has come and has neither gone nor been turned away. */
export class Entry {
  readonly attempt: () => unknown;
  readonly signal: StopSignal | undefined;
  /** A group that it has to itself, where it was given none. */
  readonly group: unknown;
  ending: Ending | undefined;
  /** What the attempt gave, or why it ended otherwise. */
  outcome: unknown;
  /** Tells its caller, once it has to wait. */
  onEnd: (() => void) | undefined;

  constructor(attempt: () => unknown, signal: StopSignal | undefined, group: unknown) {
    this.attempt = attempt;
    this.signal = signal;
    this.group = group ?? this;
  }

  end(ending: Ending, outcome: unknown): void {
    this.ending = ending;
    this.outcome = outcome;
  }
}
