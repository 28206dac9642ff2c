import { OptionError } from "../errors.js";
import { countOption, numberOption, objectOption } from "../selection/policies/numbers.js";

/** How often a request is tried, and how long it waits between two tries. */
export interface RetryOptions {
  /** Tries of a request in all. 1 to 10, default 3. */
  readonly attempts?: number | undefined;
  /** How long to wait before the second try, where no other worker is left. 0 to 600,000, default 50. */
  readonly backoffMs?: number | undefined;
  /** What the wait grows to, and the longest `Retry-After` that is waited for. `backoffMs` to 600,000, default 2,000. */
  readonly maxBackoffMs?: number | undefined;
  /** By how much each wait is longer than the one before. 1 to 10, default 1.5. */
  readonly factor?: number | undefined;
  /** Which share of a wait is left to chance, to either side. 0 to 1, default 0.2. */
  readonly jitter?: number | undefined;
}

/** The options of retrying, checked, with their defaults. */
export interface RetrySettings {
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly factor: number;
  readonly jitter: number;
}

export const RETRY_ATTEMPTS_DEFAULT = 3;
export const RETRY_ATTEMPTS_MAX = 10;
export const RETRY_BACKOFF_MS_DEFAULT = 50;
export const RETRY_MAX_BACKOFF_MS_DEFAULT = 2_000;
export const RETRY_FACTOR_DEFAULT = 1.5;
export const RETRY_FACTOR_MAX = 10;
export const JITTER_DEFAULT = 0.2;
const WAIT_MS_MAX = 600_000;

/**
 * Checks the options of retrying and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function retrySettings(options: RetryOptions = {}): RetrySettings {
  objectOption("retry", options);
  const { attempts = RETRY_ATTEMPTS_DEFAULT, factor = RETRY_FACTOR_DEFAULT, jitter = JITTER_DEFAULT } = options;
  const { backoffMs = RETRY_BACKOFF_MS_DEFAULT, maxBackoffMs = RETRY_MAX_BACKOFF_MS_DEFAULT } = options;
  countOption("retry.backoffMs", backoffMs, 0, WAIT_MS_MAX);
  countOption("retry.maxBackoffMs", maxBackoffMs, 0, WAIT_MS_MAX);
  if (maxBackoffMs < backoffMs) {
    const least = `at least retry.backoffMs, which is ${backoffMs}`;
    throw new OptionError(`Expected retry.maxBackoffMs to be ${least}, got ${maxBackoffMs}.`);
  }
  return {
    attempts: countOption("retry.attempts", attempts, 1, RETRY_ATTEMPTS_MAX),
    backoffMs,
    maxBackoffMs,
    factor: numberOption("retry.factor", factor, 1, RETRY_FACTOR_MAX),
    jitter: numberOption("retry.jitter", jitter, 0, 1),
  };
}

/** Why a request may be tried again: the names of counters. */
export const RETRY_REASONS = ["connect", "first-byte-timeout", "broken", "429", "503", "5xx", "asked"] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];
