import type { SessionDecision } from "../selection/service.js";
import { DIALECT_PATHS } from "./dialect.js";
import {
  Histogram,
  type HistogramSnapshot,
  INTER_TOKEN_BOUNDS,
  REQUEST_BOUNDS,
  ROUTING_BOUNDS,
  TTFT_BOUNDS,
} from "./histogram.js";
import { RETRY_REASONS, type RetryReason } from "./retry-options.js";
import type { Usage } from "./usage.js";

/** Paths that requests are counted by. Any other is `other`, so that nobody can make a path of his own. */
export const COUNTED_PATHS: readonly string[] = /* @__PURE__ */ [...DIALECT_PATHS, "/v1/models"];
/** Statuses that requests are counted by. Any other is its class, such as `5xx`, or `other`, since engines may send any. */
export const COUNTED_STATUSES: readonly number[] = [
  200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 424, 429, 499, 500, 501, 502, 503, 504, 529,
];

const OTHER = "other";

/** Requests of a path that ended with a status. */
export interface RequestCount {
  /** One of `COUNTED_PATHS`, or `other`. */
  readonly path: string;
  /** One of `COUNTED_STATUSES`, or its class, such as `5xx`, or `other`. */
  readonly status: string;
  readonly count: number;
}

/** How long things took, in seconds. */
export interface Timings {
  /** What the router added to a request, each time that it was sent to a worker. */
  readonly routing: HistogramSnapshot;
  /** From a request to the first token of a stream. */
  readonly ttft: HistogramSnapshot;
  /** From one token of a stream to the next: of tokens that came together, their part of the time. */
  readonly interToken: HistogramSnapshot;
  /** What requests waited that had to wait for a worker and got one. */
  readonly queue: HistogramSnapshot;
  /** A request from end to end. */
  readonly request: HistogramSnapshot;
}

/** What a router has done since it was made. */
export interface GatewayCounts {
  /** Those that have ended; a combination that never came is absent. */
  readonly requests: readonly RequestCount[];
  /** What became of the workers of sessions. */
  readonly decisions: Readonly<Record<SessionDecision, number>>;
  /** Tries behind the first, by why there had to be one. */
  readonly retries: Readonly<Record<RetryReason, number>>;
  /** Tokens of prompts and of outputs, as engines have reported them. */
  readonly tokens: { readonly prompt: number; readonly output: number };
  readonly timings: Timings;
}

function noRetries(): Record<RetryReason, number> {
  return Object.fromEntries(RETRY_REASONS.map((reason) => [reason, 0])) as Record<RetryReason, number>;
}

/** Counts what a router does. Every call is a few dozen nanoseconds, and nothing in here grows with the requests. */
export class GatewayMetrics {
  readonly #routing = new Histogram(ROUTING_BOUNDS);
  readonly #ttft = new Histogram(TTFT_BOUNDS);
  readonly #interToken = new Histogram(INTER_TOKEN_BOUNDS);
  readonly #queue = new Histogram(REQUEST_BOUNDS);
  readonly #request = new Histogram(REQUEST_BOUNDS);
  readonly #decisions: Record<SessionDecision, number> = { initialize: 0, retain: 0, switch: 0, spill: 0 };
  readonly #retries = noRetries();
  /** By path, then by status. */
  readonly #requests = new Map<string, Map<number | string, number>>();
  #promptTokens = 0;
  #outputTokens = 0;

  constructor() {
    for (const path of [...COUNTED_PATHS, OTHER]) this.#requests.set(path, new Map());
  }

  /** A request was sent to a worker, after the router had worked on it for so long. */
  routed(seconds: number): void {
    this.#routing.observe(seconds);
  }

  /** This became of the worker of a session. */
  decided(decision: SessionDecision): void {
    this.#decisions[decision]++;
  }

  /** A request that had to wait for a worker has one, after so long. */
  queued(seconds: number): void {
    this.#queue.observe(seconds);
  }

  /** The first token of a stream has come, so long after the request. */
  firstToken(seconds: number): void {
    this.#ttft.observe(seconds);
  }

  /** So many tokens more have come, so long after those before them. */
  tokens(seconds: number, count: number): void {
    if (count > 0) this.#interToken.observe(seconds / count, count);
  }

  /** A request goes to a worker once more. */
  retried(reason: RetryReason): void {
    this.#retries[reason]++;
  }

  /** An engine has said what a request took. */
  used({ promptTokens = 0, outputTokens = 0 }: Usage): void {
    this.#promptTokens += promptTokens;
    this.#outputTokens += outputTokens;
  }

  /** A request has ended. */
  ended(path: string, status: number, seconds: number): void {
    const statuses = this.#requests.get(path) ?? (this.#requests.get(OTHER) as Map<number | string, number>);
    const key = KEPT_STATUSES.has(status) ? status : classOf(status);
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
    this.#request.observe(seconds);
  }

  snapshot(): GatewayCounts {
    const requests = [...this.#requests].flatMap(([path, statuses]) =>
      [...statuses].map(([status, count]) => ({ path, status: String(status), count })),
    );
    return {
      requests,
      decisions: { ...this.#decisions },
      retries: { ...this.#retries },
      tokens: { prompt: this.#promptTokens, output: this.#outputTokens },
      timings: {
        routing: this.#routing.snapshot(),
        ttft: this.#ttft.snapshot(),
        interToken: this.#interToken.snapshot(),
        queue: this.#queue.snapshot(),
        request: this.#request.snapshot(),
      },
    };
  }
}

const KEPT_STATUSES: ReadonlySet<number> = /* @__PURE__ */ new Set(COUNTED_STATUSES);

function classOf(status: number): string {
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : OTHER;
}
