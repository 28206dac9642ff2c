import type { FinishReason, Sequence } from "./sequence.js";

/** How a request ended. */
export interface RunEnd {
  readonly reason: FinishReason;
  readonly promptTokens: number;
  /** Tokens of the prompt that were cached when it was first admitted. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** Who is told what becomes of a request. It may submit and abort requests meanwhile. */
export interface RunListener {
  readonly onToken?: ((token: number, index: number) => void) | undefined;
  /** Told once, when the request holds no block any more. */
  readonly onEnd?: ((end: RunEnd) => void) | undefined;
}

/** A request that an engine has taken. */
export interface EngineRun {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Tokens of the prompt that were cached at its first admission; 0 before. */
  readonly cachedTokens: number;
  readonly isEnded: boolean;
  /** Ends the request: at once if it waits, and with the pass that computes it otherwise. */
  abort(): void;
}

/** A run as its engine sees it. */
export class Run implements EngineRun {
  readonly sequence: Sequence;
  readonly listener: RunListener;
  readonly submittedMs: number;
  lastTokenMs: number;
  isEnded = false;
  readonly #abort: (run: Run) => void;

  constructor(sequence: Sequence, listener: RunListener, nowMs: number, abort: (run: Run) => void) {
    this.sequence = sequence;
    this.listener = listener;
    this.submittedMs = nowMs;
    this.lastTokenMs = nowMs;
    this.#abort = abort;
  }

  get promptTokens(): number {
    return this.sequence.promptLength;
  }

  get outputTokens(): number {
    return this.sequence.outputLength;
  }

  get cachedTokens(): number {
    return Math.max(0, this.sequence.cachedTokens);
  }

  abort(): void {
    if (!this.isEnded) this.#abort(this);
  }
}
