/** Time, as services are given it. */
export interface Clock {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  readonly setTimeout: (callback: () => void, delayMs: number) => unknown;
  readonly clearTimeout: (handle: unknown) => void;
}
