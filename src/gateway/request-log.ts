import type { SessionDecision } from "../selection/service.js";
import type { GatewayMetrics } from "./metrics.js";
import type { RouterSettings } from "./options.js";
import type { Receipt } from "./receipt.js";
import type { GatewayRequest, Outcome } from "./types.js";
import type { Usage } from "./usage.js";

/** What became of a request, for logs. */
export interface RequestRecord {
  readonly method: string;
  readonly path: string;
  /** Empty where the body names none, or was not read. */
  readonly model: string;
  /** What the client was answered with; 499 where it had gone. */
  readonly status: number;
  /** `refused`: no worker has had it. */
  readonly outcome: Outcome | "refused";
  /** The code of the error that the router answered with. */
  readonly error?: string | undefined;
  /** The worker that had it last. */
  readonly worker?: string | undefined;
  readonly decision?: SessionDecision | undefined;
  /** Workers that it was sent to, each as often as that. */
  readonly attempts: number;
  readonly queuedMs: number;
  readonly routingMs: number;
  /** From the request to the first token of a stream; `undefined` for an answer that came in one. */
  readonly ttftMs?: number | undefined;
  readonly durationMs: number;
  /** Tokens of the prompt that the worker was believed to have cached. */
  readonly predictedCachedTokens?: number | undefined;
  /** The same, as the engine counts them. */
  readonly cachedTokens?: number | undefined;
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** The status of a request whose client has gone; it stays in logs. */
export const CLIENT_GONE = 499;

/** How a request has ended. */
export interface RequestEnd {
  readonly status: number;
  readonly outcome: RequestRecord["outcome"];
  readonly error?: string | undefined;
  readonly usage?: Usage | undefined;
}

/** What a log is made with. */
export interface RequestLogParts {
  readonly request: Pick<GatewayRequest, "method" | "path">;
  readonly settings: RouterSettings;
  readonly meter: GatewayMetrics;
  /** Default: now. */
  readonly begunAtMs?: number | undefined;
  /** Called once: `refused` also where the caller went before a worker was chosen. */
  readonly onEnd: (outcome: RequestRecord["outcome"]) => void;
}

/** Notes what happens to one request, and tells it once, when it has ended. */
export class RequestLog {
  readonly #parts: RequestLogParts;
  readonly #begunAtMs: number;
  #firstTokenAtMs: number | undefined;
  #receipt: Receipt | undefined;
  #hasEnded = false;
  model = "";
  queuedMs = 0;
  /** How the last try ended, if there was one. */
  outcome: RequestRecord["outcome"] = "refused";

  constructor(parts: RequestLogParts) {
    this.#parts = parts;
    this.#begunAtMs = parts.begunAtMs ?? parts.settings.clock.now();
  }

  /** How long the request has taken so far. */
  get elapsedMs(): number {
    return this.#parts.settings.clock.now() - this.#begunAtMs;
  }

  routed(receipt: Receipt): void {
    this.#receipt = receipt;
  }

  /** Says that a token of a stream has come: the first of them counts. */
  firstToken(nowMs: number): void {
    if (this.#firstTokenAtMs !== undefined) return;
    this.#firstTokenAtMs = nowMs;
    this.#parts.meter.firstToken((nowMs - this.#begunAtMs) / 1000);
  }

  end({ status, outcome, error, usage }: RequestEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const durationMs = this.elapsedMs;
    const { request, settings, meter, onEnd } = this.#parts;
    const { method, path } = request;
    meter.ended(path, status, durationMs / 1000);
    onEnd(this.#receipt === undefined ? "refused" : outcome);
    if (settings.onRequest === undefined) return;
    const { queuedMs } = this;
    const { worker, decision, attempt = 0, routingMs = durationMs - queuedMs } = this.#receipt ?? {};
    settings.tell("onRequest", {
      method,
      path,
      model: this.model,
      status,
      outcome,
      error,
      worker,
      decision,
      attempts: attempt,
      queuedMs,
      routingMs,
      durationMs,
      ttftMs: this.#firstTokenAtMs === undefined ? undefined : this.#firstTokenAtMs - this.#begunAtMs,
      predictedCachedTokens: this.#receipt?.predictedCachedTokens,
      cachedTokens: usage?.cachedTokens,
      promptTokens: usage?.promptTokens,
      outputTokens: usage?.outputTokens,
    });
  }
}
