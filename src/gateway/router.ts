import { KvrouteError, OptionError, UpstreamError } from "../errors.js";
import type { SelectionService } from "../selection/service.js";
import { errorAnswer } from "./envelope.js";
import type { RouteExplanation } from "./explain.js";
import { type RouterOptions, routerSettings, type WorkerOptions } from "./options.js";
import { Pipeline } from "./pipeline.js";
import { CLIENT_GONE } from "./request-log.js";
import { sharedSignal } from "./shared-signal.js";
import { type RouterStats, statsOf } from "./stats.js";
import { abortable } from "./stop.js";
import type { Answer, GatewayRequest } from "./types.js";
import { headOf, type RequestHead, requestOf, requestOfRequest, responseOf } from "./web.js";

export type { RouteCandidate, RouteExplanation } from "./explain.js";
export type { RouterOptions, RouterWarning, WorkerOptions } from "./options.js";
export type { Receipt } from "./receipt.js";
export type { RequestRecord } from "./request-log.js";
export type { RouterStats, RouterWorkerStats } from "./stats.js";
export type { Answer, AnswerBody, GatewayRequest, Outcome, OutcomeCounts } from "./types.js";
export type { Upstream, UpstreamRequest } from "./upstream.js";

/** What of a server's context a router uses. */
export interface HandlerContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** Sends each request to the worker that is best for it. */
export interface Router {
  /** Takes the place of `fetch` in a client. It needs no `this`. */
  readonly fetch: typeof globalThis.fetch;
  /** Answers requests that a server has received. It needs no `this`. */
  readonly handler: (request: Request, context?: HandlerContext) => Promise<Response>;
  /**
   * Adds a worker.
   *
   * @throws {OptionError} `KVROUTE_OPTION` if an option is wrong, or the id is taken
   */
  addWorker(worker: WorkerOptions): void;
  /**
   * Removes a worker at once, and what is known of its cache. Its requests go on.
   *
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id
   */
  removeWorker(id: string): void;
  /**
   * Gives a worker no more requests. Resolves when those that it has have ended; the signal ends the waiting alone.
   *
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id
   */
  drain(id: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Takes no more requests. Resolves when those that there are have ended; the signal ends them at once. */
  close(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  stats(): RouterStats;
  /**
   * Answers a request in the form that servers have it in: what `handler` does, without the objects of the Web. Rejects
   * where the caller has gone, with the reason of the signal.
   */
  readonly answer: (request: GatewayRequest) => Promise<Answer>;
  /** Answers a request that a server does not take in, say since it has no key: with the error, and counted as any other. */
  readonly refuse: (request: Pick<GatewayRequest, "method" | "path">, error: KvrouteError) => Answer;
  /** Says where a request would go now, and why. Books nothing; a policy that takes turns takes one. */
  explain(request: GatewayRequest): Promise<RouteExplanation>;
  /**
   * Does what the first request would do: loads what answers requests, and begins to ask the workers for their health, if the
   * options have it so.
   */
  watch(): void;
  /** Whether a request could be served now: the router is open, and some worker can have it, be it in its turn. */
  readonly isReady: boolean;
  /** What the router books its requests with. Who books here as well is reckoned with. */
  readonly selection: SelectionService;
}

/**
 * Makes a router. It reads no clock, draws no randomness and sets no timer before the first request.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function createRouter(options: RouterOptions): Router {
  if (!Array.isArray(options?.workers)) throw new OptionError("Expected workers to be a list of workers.");
  const settings = routerSettings(options);
  const pipeline = new Pipeline(settings);
  options.workers.forEach((worker, index) => {
    pipeline.addWorker(worker, `workers[${index}]`);
  });
  const { maxBodyBytes } = settings;
  const fetch = (input: Request | string | URL, init?: RequestInit) =>
    respond(pipeline, headOf(input, init), () => requestOf(input, init, maxBodyBytes));
  return {
    fetch: fetch as typeof globalThis.fetch,
    handler: (request, context) => handle(pipeline, request, context, maxBodyBytes),
    addWorker: (worker) => pipeline.addWorker(worker, "worker"),
    removeWorker: (id) => pipeline.removeWorker(id),
    drain: async (id, { signal } = {}) => abortable(pipeline.drain(id).idle(), signal && sharedSignal(signal)),
    close: ({ signal } = {}) => pipeline.close(signal),
    stats: () => statsOf(pipeline),
    answer: (request) => pipeline.handle(request),
    refuse: (request, error) => refused(pipeline, request, pipeline.clock.now(), error),
    explain: (request) => pipeline.explain(request),
    watch: () => pipeline.watch(),
    get isReady() {
      return !pipeline.isClosed && pipeline.fleet.isReady(settings.clock.now());
    },
    selection: pipeline.service,
  };
}

async function handle(
  pipeline: Pipeline,
  request: Request,
  context: HandlerContext | undefined,
  maxBodyBytes: number,
): Promise<Response> {
  const waitUntil = context === undefined ? undefined : (promise: Promise<unknown>) => context.waitUntil(promise);
  try {
    const read = async () => ({ ...(await requestOfRequest(request, maxBodyBytes)), waitUntil });
    return await respond(pipeline, headOf(request), read);
  } catch (error) {
    if (request.signal.aborted) return new Response(null, { status: CLIENT_GONE }); // nobody reads it
    throw error;
  }
}

function refused(
  pipeline: Pipeline,
  request: Pick<GatewayRequest, "method" | "path">,
  begunAtMs: number,
  error: KvrouteError,
): Answer {
  const { status = 500, code } = error;
  pipeline.unread(request, begunAtMs, { status, outcome: "refused", error: code });
  return errorAnswer(error, request.path);
}

async function respond(pipeline: Pipeline, head: RequestHead, read: () => Promise<GatewayRequest>): Promise<Response> {
  const begunAtMs = pipeline.clock.now();
  const { path, signal } = head;
  let request: GatewayRequest;
  try {
    request = await read();
  } catch (error) {
    if (signal?.aborted) pipeline.unread(head, begunAtMs, { status: CLIENT_GONE, outcome: "aborted" });
    signal?.throwIfAborted();
    if (!(error instanceof KvrouteError)) throw error; // it is no request
    return responseOf(refused(pipeline, head, begunAtMs, error));
  }
  const answer = await pipeline.handle(request);
  try {
    return responseOf(answer);
  } catch (cause) {
    answer.body?.cancel(cause).catch(() => {}); // it is counted by then
    const message = `Expected an answer of which a Response can be made, got one of status ${answer.status}.`;
    return responseOf(errorAnswer(new UpstreamError("KVROUTE_UPSTREAM_BROKEN", message, { cause }), path));
  }
}
