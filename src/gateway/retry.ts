import type { BreakerEnd } from "./breaker.js";
import type { HeaderReader } from "./header-list.js";
import type { RetryReason, RetrySettings } from "./retry-options.js";

export type { RetryReason } from "./retry-options.js";

/** Moves a time by chance, by at most a share of it to either side. */
export function jittered(timeMs: number, jitter: number, random: () => number): number {
  return timeMs * (1 + jitter * (2 * random() - 1));
}

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
