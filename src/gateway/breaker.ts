import { countOption, objectOption } from "../selection/policies/numbers.js";

/** When a worker that fails is left alone, and when it is trusted again. */
export interface BreakerOptions {
  /** Failures in a row that open the breaker. 1 to 1,000,000, default 10. */
  readonly failures?: number | undefined;
  /** How long it stays open before a request may try the worker. 1 to 2^31 - 1, default a minute. */
  readonly openMs?: number | undefined;
  /** Tries in a row that have to succeed for it to close. 1 to 1,000,000, default 1. */
  readonly successes?: number | undefined;
}

/** The options of a breaker, checked, with their defaults. */
export interface BreakerSettings {
  readonly failures: number;
  readonly openMs: number;
  readonly successes: number;
}

export const BREAKER_FAILURES_DEFAULT = 10;
export const BREAKER_OPEN_MS_DEFAULT = 60_000;
export const BREAKER_SUCCESSES_DEFAULT = 1;
/** Failures, and successes, that an option can ask for at most. */
export const BREAKER_COUNT_MAX = 1_000_000;
const OPEN_MS_MAX = 2 ** 31 - 1;

/**
 * Checks the options of a breaker and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function breakerSettings(options: BreakerOptions = {}): BreakerSettings {
  objectOption("breaker", options);
  const { failures = BREAKER_FAILURES_DEFAULT, openMs = BREAKER_OPEN_MS_DEFAULT } = options;
  const { successes = BREAKER_SUCCESSES_DEFAULT } = options;
  return {
    failures: countOption("breaker.failures", failures, 1, BREAKER_COUNT_MAX),
    openMs: countOption("breaker.openMs", openMs, 1, OPEN_MS_MAX),
    successes: countOption("breaker.successes", successes, 1, BREAKER_COUNT_MAX),
  };
}

/** Closed: requests go to the worker. Open: none do. Half-open: one at a time does, the probe, to see how it fares. */
export type BreakerState = "closed" | "open" | "half-open";

/** How a request ended for its worker. Neutral is what says nothing of its health. */
export type BreakerEnd = "success" | "failure" | "neutral";

/** The openings of a permit whose end counts for nothing. */
const NEVER = -1;

/**
 * Watches how the requests of one worker end, and says whether it may have more.
 *
 *              failures in a row               openMs later, with the next request
 *   closed ───────────────────────▶ open ──────────────────────────────────────────▶ half-open
 *      ▲                              ▲                                               │    │
 *      │                              └───────────────── the probe fails ─────────────┘    │
 *      └────────────────────────────────── successes of probes in a row ───────────────────┘
 *
 * A request counts for the state that it began in: how one ends that began before the breaker opened changes nothing any more.
 */
export class Breaker {
  readonly #settings: BreakerSettings;
  readonly #onChange: ((isOpen: boolean) => void) | undefined;
  #state: BreakerState = "closed";
  #openedMs = 0;
  #openings = 0;
  /** In a row: failures while closed, successes of probes while half-open. */
  #run = 0;
  #probe: BreakerPermit | undefined;

  /** @param onChange is told when it opens, though not once more by each probe that fails, and when it closes */
  constructor(settings: BreakerSettings, onChange?: (isOpen: boolean) => void) {
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /** Counts how often it has opened, also by probes that failed. */
  get openings(): number {
    return this.#openings;
  }

  /** Whether the worker may have a request. Changes nothing. */
  isAvailable(nowMs: number): boolean {
    if (this.#state === "closed") return true;
    return this.#probe === undefined && this.state(nowMs) === "half-open";
  }

  /** Gives the state, which is half-open as soon as a probe could begin. */
  state(nowMs: number): BreakerState {
    return this.#state === "open" && !this.#isWaiting(nowMs) ? "half-open" : this.#state;
  }

  /** Gives the earliest time at which the worker may have a request: `Infinity` where that hangs on how the probe ends. */
  nextAvailableMs(nowMs: number): number {
    if (this.isAvailable(nowMs)) return nowMs;
    return this.#state === "open" ? this.#openedMs + this.#settings.openMs : Number.POSITIVE_INFINITY;
  }

  /**
   * Begins a request, which is the probe where the breaker waits for one. A request that begins although the worker is not
   * available counts for nothing, however it ends.
   */
  begin(nowMs: number): BreakerPermit {
    if (this.#state === "closed") return new BreakerPermit(this.#end, this.#openings, false);
    if (!this.isAvailable(nowMs)) return new BreakerPermit(this.#end, NEVER, false);
    this.#state = "half-open";
    this.#probe = new BreakerPermit(this.#end, this.#openings, true);
    return this.#probe;
  }

  // A clock that went back to before the opening does not keep it open: an early probe is the lesser harm.
  #isWaiting(nowMs: number): boolean {
    return nowMs >= this.#openedMs && nowMs < this.#openedMs + this.#settings.openMs;
  }

  readonly #end = (permit: BreakerPermit, end: BreakerEnd, nowMs: number): void => {
    if (permit === this.#probe) this.#endProbe(end, nowMs);
    else if (this.#state === "closed" && permit.openings === this.#openings) this.#endOrdinary(end, nowMs);
  };

  #endProbe(end: BreakerEnd, nowMs: number): void {
    this.#probe = undefined;
    if (end === "failure") this.#open(nowMs);
    if (end === "success" && ++this.#run === this.#settings.successes) {
      this.#enter("closed");
      this.#onChange?.(false);
    }
  }

  #endOrdinary(end: BreakerEnd, nowMs: number): void {
    if (end === "success") this.#run = 0;
    if (end === "failure" && ++this.#run === this.#settings.failures) this.#open(nowMs);
  }

  #open(nowMs: number): void {
    const wasClosed = this.#state === "closed";
    this.#openedMs = nowMs;
    this.#openings++;
    this.#enter("open");
    if (wasClosed) this.#onChange?.(true);
  }

  #enter(state: BreakerState): void {
    this.#state = state;
    this.#run = 0;
  }
}

/** A request that is under way, as its worker's breaker sees it. Its first end counts; later ones change nothing. */
export class BreakerPermit {
  /** How often the breaker had opened when the request began. */
  readonly openings: number;
  /** Whether the breaker waits for how this request ends: it should learn that as soon as the worker has shown that it answers. */
  readonly isProbe: boolean;
  #end: ((permit: BreakerPermit, end: BreakerEnd, nowMs: number) => void) | undefined;

  constructor(
    end: (permit: BreakerPermit, end: BreakerEnd, nowMs: number) => void,
    openings: number,
    isProbe: boolean,
  ) {
    this.#end = end;
    this.openings = openings;
    this.isProbe = isProbe;
  }

  /** The worker has answered. */
  success(nowMs: number): void {
    this.end("success", nowMs);
  }

  /** The worker could not be reached, broke off, kept silent, or says that it has failed. */
  failure(nowMs: number): void {
    this.end("failure", nowMs);
  }

  /** The end says nothing of the worker's health: a bad request, a worker with too much to do, a caller who went away. */
  neutral(): void {
    this.end("neutral", 0);
  }

  /** Ends the request in one of the three ways. */
  end(end: BreakerEnd, nowMs: number): void {
    const report = this.#end;
    this.#end = undefined;
    report?.(this, end, nowMs);
  }
}
