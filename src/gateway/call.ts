import type { Clock } from "../clock.js";
import { UpstreamError } from "../errors.js";
import { Stop, type StopSignal } from "./stop.js";
import type { Outcome } from "./types.js";

/** What a call is made with. */
export interface CallParts {
  readonly clock: Clock;
  /** After which time without an answer it ends. */
  readonly firstByteTimeoutMs: number;
  /** After which time it ends once an answer has begun, if nothing moves. */
  readonly stallTimeoutMs: number;
  /** Aborts when the caller has gone. */
  readonly caller: StopSignal | undefined;
  /** Names the worker in errors. */
  readonly workerId: string;
  /** Gives back all that the call holds. Called once, however the call ends. */
  readonly onSettled: (outcome: Outcome) => void;
  /** Is called while the call makes progress, at least once in `stallTimeoutMs`. */
  readonly onAlive: () => void;
}

/**
 * One request at one worker, from when it is booked to when it has ended. It ends once: whichever of its ends comes first
 * settles it, and the others find it settled.
 */
export class Call {
  readonly #parts: CallParts;
  readonly #stop = new Stop();
  /** Its neighbours in the list of those under way. */
  before: Call | null = null;
  after: Call | null = null;
  #isSettled = false;
  #settled: Promise<void> | undefined;
  #resolveSettled: (() => void) | undefined;
  #progressMs = 0;
  #limitMs = 0;
  #timer: unknown;
  #interrupt: ((reason: unknown) => void) | undefined;

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  /** Resolves when it is settled. */
  get settled(): Promise<void> {
    this.#settled ??= new Promise((resolve) => {
      this.#resolveSettled = resolve;
      if (this.#isSettled) resolve();
    });
    return this.#settled;
  }

  /** Begins to watch the time and the caller. */
  begin(): void {
    const { clock, caller, firstByteTimeoutMs } = this.#parts;
    this.#progressMs = clock.now();
    this.#limitMs = firstByteTimeoutMs;
    this.#watchLater(firstByteTimeoutMs);
    caller?.addEventListener("abort", this.#onCallerGone);
    if (caller?.aborted) this.#onCallerGone();
  }

  /** Aborts when the call is cut, for the worker's end of it. */
  get signal(): StopSignal {
    return this.#stop;
  }

  /** Whether the caller has gone: nobody is there to be told anything. */
  get isAbandoned(): boolean {
    return this.#parts.caller?.aborted === true;
  }

  /**
   * Waits for what the worker does next, unless the call is cut before. One at a time.
   *
   * @param onLate is given what comes when the call has been cut, and nobody waits for it any more
   */
  wait<T>(next: Promise<T>, onLate?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      next.then(
        (value) => {
          if (this.#stop.aborted) onLate?.(value);
          this.#interrupt = undefined;
          resolve(value);
        },
        (reason) => {
          this.#interrupt = undefined;
          reject(reason);
        },
      );
      if (this.signal.aborted) reject(this.signal.reason);
    });
  }

  /** Whether it is the worker's turn: else the caller has not asked for more. */
  get isWaiting(): boolean {
    return this.#interrupt !== undefined;
  }

  /** Says that the answer has begun. */
  begun(): void {
    const { stallTimeoutMs, firstByteTimeoutMs } = this.#parts;
    this.progress();
    this.#limitMs = stallTimeoutMs;
    if (stallTimeoutMs < firstByteTimeoutMs) this.#watchLater(stallTimeoutMs); // the timer would come too late
  }

  /** Says that something has moved. */
  progress(): void {
    this.#progressMs = this.#parts.clock.now();
  }

  /** Says how the call has ended. Later ends change nothing. */
  settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    try {
      this.#parts.onSettled(outcome);
    } finally {
      this.#resolveSettled?.();
    }
  }

  /** Ends the call and the worker's part of it, and tells whoever waits why. */
  cut(outcome: Outcome, reason: unknown): void {
    this.settle(outcome);
    this.close();
    this.#stop.abort(reason);
    this.#interrupt?.(reason);
  }

  /** Says that the connection has ended as well: until then an engine that has said all may still hold it open. */
  close(): void {
    this.#parts.clock.clearTimeout(this.#timer);
    this.#parts.caller?.removeEventListener("abort", this.#onCallerGone);
  }

  readonly #onCallerGone = (): void => this.cut("aborted", this.#parts.caller?.reason);

  #watchLater(ms: number): void {
    const { clock } = this.#parts;
    if (this.#stop.aborted) return;
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(this.#watch, ms);
  }

  readonly #watch = (): void => {
    const { clock, workerId, onAlive } = this.#parts;
    const leftMs = this.#limitMs - (clock.now() - this.#progressMs);
    if (leftMs > 0) {
      this.#watchLater(leftMs);
      if (!this.#isSettled) onAlive();
      return;
    }
    const message = `Expected the answer of worker "${workerId}" to go on within ${this.#limitMs} ms, but nothing moved.`;
    this.cut("stalled", new UpstreamError("KVROUTE_UPSTREAM_STALLED", message));
  };
}
