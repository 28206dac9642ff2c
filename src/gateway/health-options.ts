import { describe } from "../core/describe.js";
import { OptionError } from "../errors.js";
import { countOption, numberOption, objectOption } from "../selection/policies/numbers.js";
import { JITTER_DEFAULT } from "./retry-options.js";

/** How workers are asked whether they are well. */
export interface HealthOptions {
  /** What is asked for at each worker. Default `/health`. */
  readonly path?: string | undefined;
  /** How long after a check the next one comes. 100 to 86,400,000, default a minute. */
  readonly intervalMs?: number | undefined;
  /** How long a check may take. 1 to 600,000, default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Failed checks in a row that make a worker unhealthy. 1 to 1,000, default 3. */
  readonly failures?: number | undefined;
  /** Good checks in a row that make a worker healthy. 1 to 1,000, default 2. */
  readonly successes?: number | undefined;
  /** Which share of the interval is left to chance, to either side. 0 to 1, default 0.2. */
  readonly jitter?: number | undefined;
}

/** The options of health checks, checked, with their defaults. */
export type HealthSettings = { readonly [Name in keyof HealthOptions]-?: NonNullable<HealthOptions[Name]> };

export const HEALTH_PATH_DEFAULT = "/health";
export const HEALTH_INTERVAL_MS_DEFAULT = 60_000;
export const HEALTH_INTERVAL_MS_MIN = 100;
export const HEALTH_TIMEOUT_MS_DEFAULT = 5_000;
export const HEALTH_FAILURES_DEFAULT = 3;
export const HEALTH_SUCCESSES_DEFAULT = 2;
const PATH_LENGTH_MAX = 1_024;
const INTERVAL_MS_MAX = 86_400_000;
const TIMEOUT_MS_MAX = 600_000;
const COUNT_MAX = 1_000;

/**
 * Checks the options of health checks and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function healthSettings(options: HealthOptions = {}): HealthSettings {
  objectOption("health", options);
  const { path = HEALTH_PATH_DEFAULT, jitter = JITTER_DEFAULT } = options;
  const { intervalMs = HEALTH_INTERVAL_MS_DEFAULT, timeoutMs = HEALTH_TIMEOUT_MS_DEFAULT } = options;
  const { failures = HEALTH_FAILURES_DEFAULT, successes = HEALTH_SUCCESSES_DEFAULT } = options;
  if (typeof path !== "string" || path.length > PATH_LENGTH_MAX || !/^\/[\x21\x22\x24-\x7e]*$/.test(path)) {
    const what = `a path of at most ${PATH_LENGTH_MAX} characters that begins with /`;
    throw new OptionError(`Expected health.path to be ${what}, got ${describe(path)}.`);
  }
  return {
    path,
    intervalMs: countOption("health.intervalMs", intervalMs, HEALTH_INTERVAL_MS_MIN, INTERVAL_MS_MAX),
    timeoutMs: countOption("health.timeoutMs", timeoutMs, 1, TIMEOUT_MS_MAX),
    failures: countOption("health.failures", failures, 1, COUNT_MAX),
    successes: countOption("health.successes", successes, 1, COUNT_MAX),
    jitter: numberOption("health.jitter", jitter, 0, 1),
  };
}
