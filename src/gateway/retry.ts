import { OptionError } from "../errors.js";
import { countOption, numberOption, objectOption } from "../selection/policies/numbers.js";
import type { BreakerEnd } from "./breaker.js";
import type { HeaderReader } from "./header-list.js";

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

/** Moves a time by chance, by at most a share of it to either side. */
export function jittered(timeMs: number, jitter: number, random: () => number): number {
  return timeMs * (1 + jitter * (2 * random() - 1));
}

/** Why a request may be tried again: the names of counters. */
export const RETRY_REASONS = ["connect", "first-byte-timeout", "broken", "429", "503", "5xx", "asked"] as const;
export type RetryReason = (typeof RETRY_REASONS)[number];

/** How a try can end without an answer, or with one that is not whole. */
export type AttemptFailure =
  /** No connection came about: the worker has seen nothing of the request. */
  | "connect"
  /** The worker had the request, and nothing came in time. */
  | "first-byte-timeout"
  /** The connection broke: the worker may have done the work. */
  | "broken"
  /** The answer began, and the worker fell silent. */
  | "stalled"
  /** The caller went away, or stopped reading. */
  | "aborted";

/** A try at one worker, ended. */
export type AttemptEnd =
  | { readonly path: string; readonly status: number; readonly headers: HeaderReader }
  | {
      readonly path: string;
      readonly failure: AttemptFailure;
      /** Whether a byte of the answer has reached the caller. Default false. */
      readonly hasBegun?: boolean | undefined;
    };

/** What follows from how a try ended. */
export interface Verdict {
  /** How it counts for the worker's breaker. */
  readonly end: BreakerEnd;
  /** Why the request may be tried again, `undefined` where it may not. */
  readonly retry: RetryReason | undefined;
  /** How long the worker wants to be left alone. */
  readonly retryAfterMs: number | undefined;
}

/** Paths whose requests leave nothing behind at a worker that did not answer. A response may have been stored. */
const REPEATABLE = /* @__PURE__ */ new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/messages",
  "/v1/embeddings",
]);
/** What the request is to blame for, and would be anywhere: 501 Not Implemented, 505 HTTP Version Not Supported. */
const OF_THE_REQUEST = /* @__PURE__ */ new Set([501, 505]);

/** Says what follows from how a try ended. */
export function verdictOf(end: AttemptEnd): Verdict {
  return "failure" in end ? afterFailure(end) : afterAnswer(end);
}

function afterFailure({ path, failure, hasBegun = false }: Extract<AttemptEnd, { failure: unknown }>): Verdict {
  const retryAfterMs = undefined;
  if (failure === "aborted") return { end: "neutral", retry: undefined, retryAfterMs };
  const mayRepeat = failure === "connect" || REPEATABLE.has(path);
  const retry = failure === "stalled" || hasBegun || !mayRepeat ? undefined : failure;
  return { end: "failure", retry, retryAfterMs };
}

function afterAnswer({ path, status, headers }: Extract<AttemptEnd, { status: number }>): Verdict {
  if (status < 400) return { end: "success", retry: undefined, retryAfterMs: undefined };
  const isOfWorker = status === 429 || (status >= 500 && !OF_THE_REQUEST.has(status));
  const end = isOfWorker && status !== 429 && status !== 503 ? "failure" : "neutral";
  const asked = headers.get("x-should-retry");
  const retry =
    asked === "false" ? undefined : (reasonOf(path, status, isOfWorker) ?? (asked === "true" ? "asked" : undefined));
  return { end, retry, retryAfterMs: isOfWorker || retry !== undefined ? retryAfterOf(headers) : undefined };
}

function reasonOf(path: string, status: number, isOfWorker: boolean): RetryReason | undefined {
  if (status === 429) return "429";
  if (status === 503) return "503";
  return isOfWorker && REPEATABLE.has(path) ? "5xx" : undefined;
}

/**
 * Reads how long a worker wants to be left alone: `retry-after-ms`, or `retry-after` in seconds, or as a date, which is taken
 * against the answer's own `date`: so neither this clock nor the worker's need be right. `undefined` where nothing is legible.
 */
export function retryAfterOf(headers: HeaderReader): number | undefined {
  const ms = decimal(headers.get("retry-after-ms"));
  if (ms !== undefined) return ms;
  const after = headers.get("retry-after");
  const seconds = decimal(after);
  if (seconds !== undefined) return seconds * 1_000;
  const untilMs = date(after);
  const sentMs = date(headers.get("date"));
  return untilMs === undefined || sentMs === undefined ? undefined : Math.max(0, untilMs - sentMs);
}

function decimal(text: string | null): number | undefined {
  return text !== null && /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : undefined;
}

/** Reads a date in the form that HTTP has now; the two that it once had are not read. */
function date(text: string | null): number | undefined {
  if (text === null || !/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** How long to wait after a try, counted from 1, before the next: it grows up to `maxBackoffMs`, and chance moves it. */
export function backoffMs(settings: RetrySettings, attempt: number, random: () => number): number {
  const grownMs = settings.backoffMs * settings.factor ** (attempt - 1);
  return jittered(Math.min(settings.maxBackoffMs, grownMs), settings.jitter, random);
}

/** Where a request stands after a try. */
export interface RetryPosition {
  /** The number of the try, from 1. */
  readonly attempt: number;
  readonly verdict: Verdict;
  /** Whether there is an available worker that the request has not tried. */
  readonly hasOther: boolean;
}

/**
 * Says how long a request waits before its next try, `undefined` where it has none and its end goes to the caller. Another
 * worker is asked at once: waiting is for workers that were asked before. One that asks for longer than `maxBackoffMs` is not
 * waited for.
 */
export function retryDelayMs(
  settings: RetrySettings,
  { attempt, verdict, hasOther }: RetryPosition,
  random: () => number,
): number | undefined {
  if (verdict.retry === undefined || attempt >= settings.attempts) return undefined;
  if (hasOther) return 0;
  const { retryAfterMs = 0 } = verdict;
  return retryAfterMs > settings.maxBackoffMs
    ? undefined
    : Math.max(retryAfterMs, backoffMs(settings, attempt, random));
}

/** What runtimes say where no connection came about: Node and undici, Bun. */
const UNCONNECTED = /* @__PURE__ */ new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "EADDRNOTAVAIL"],
  ...["UND_ERR_CONNECT_TIMEOUT", "ConnectionRefused", "FailedToOpenSocket"],
]);
const CAUSES_MAX = 4;

/**
 * Says of what sending a request failed with whether the worker never had it. Where the runtime does not say why, as browsers
 * do not, the worker may have had it, and the request is `broken`.
 */
export function sendFailureOf(error: unknown): "connect" | "broken" {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && typeof cause === "object" && cause !== null; depth++) {
    const { code, cause: next } = cause as { code?: unknown; cause?: unknown };
    if (typeof code === "string" && UNCONNECTED.has(code)) return "connect";
    cause = next;
  }
  return "broken";
}
