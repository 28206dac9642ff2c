/** Milliseconds of a fresh start. */
export interface Sample {
  readonly importMs: number;
  /** From the import to the first decision. */
  readonly decideMs: number;
}

/** What is imported. */
export type What = "empty" | "kvroute";

/** A runtime that can be started afresh any number of times. */
export interface Runtime {
  readonly name: string;
  sample(what: What): Promise<Sample>;
  close?(): Promise<void>;
}
