import { KvrouteError, OptionError } from "../errors.js";
import type { SelectionStats } from "../selection/service.js";
import { errorAnswer } from "./envelope.js";
import { type RouterOptions, routerSettings, type WorkerOptions } from "./options.js";
import { Pipeline } from "./pipeline.js";
import type { GatewayRequest, OutcomeCounts } from "./types.js";
import { pathOf, requestOf, requestOfRequest, responseOf } from "./web.js";

export type { RouterOptions, WorkerOptions } from "./options.js";
export type { Outcome, OutcomeCounts } from "./types.js";

/** The status of a request whose client has gone; it stays in logs. */
const CLIENT_GONE = 499;

/** What of a server's context a router uses. */
export interface HandlerContext {
  waitUntil(promise: Promise<unknown>): void;
}

/** How a worker stands. */
export interface RouterWorkerStats {
  readonly id: string;
  readonly isDraining: boolean;
  readonly inFlight: number;
  readonly outcomes: OutcomeCounts;
  /** Tokens of prompts that it has yet to compute, as they are booked. */
  readonly activePrefillTokens: number;
  /** Blocks that its requests have in use, as they are booked. */
  readonly activeBlocks: number;
}

/** How a router stands. */
export interface RouterStats {
  /** Requests that are at a worker. */
  readonly inFlight: number;
  /** How those ended that were at a worker. */
  readonly outcomes: OutcomeCounts;
  /** Bodies of workers that could not be cancelled. */
  readonly failedCancels: number;
  readonly workers: readonly RouterWorkerStats[];
  /** Bytes of prompt in a token, by model, as learnt from what engines count. */
  readonly bytesPerToken: Readonly<Record<string, number>>;
  readonly selection: SelectionStats;
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
    pipeline.fleet.add(worker, `workers[${index}]`);
  });
  const { maxBodyBytes } = settings;
  const fetch = (input: Request | string | URL, init?: RequestInit) =>
    respond(pipeline, pathOf(input), () => requestOf(input, init, maxBodyBytes));
  return {
    fetch: fetch as typeof globalThis.fetch,
    handler: (request, context) => handle(pipeline, request, context, maxBodyBytes),
    addWorker: (worker) => pipeline.fleet.add(worker, "worker"),
    removeWorker: (id) => pipeline.removeWorker(id),
    drain: async (id, { signal } = {}) => abortable(pipeline.fleet.drain(id).idle(), signal),
    close: ({ signal } = {}) => pipeline.close(signal),
    stats: () => statsOf(pipeline),
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
    return await respond(pipeline, pathOf(request), read);
  } catch (error) {
    if (request.signal.aborted) return new Response(null, { status: CLIENT_GONE }); // nobody reads it
    throw error;
  }
}

async function respond(pipeline: Pipeline, path: string, read: () => Promise<GatewayRequest>): Promise<Response> {
  let request: GatewayRequest;
  try {
    request = await read();
  } catch (error) {
    if (error instanceof KvrouteError) return responseOf(errorAnswer(error, path));
    throw error;
  }
  return responseOf(await pipeline.handle(request));
}

function statsOf({ inFlight, outcomes, failedCancels, fleet, rates, service }: Pipeline): RouterStats {
  const loads = new Map(
    service.loads().flatMap(({ loads }) => loads.map((load) => [String(load.worker.workerId), load] as const)),
  );
  const workers = fleet.workers.map(({ settings: { id }, isDraining, inFlight, outcomes }) => {
    const { activePrefillTokens = 0, activeBlocks = 0 } = loads.get(id) ?? {};
    return { id, isDraining, inFlight, outcomes: { ...outcomes }, activePrefillTokens, activeBlocks };
  });
  const bytesPerToken = rates.list();
  return { inFlight, outcomes: { ...outcomes }, failedCancels, workers, bytesPerToken, selection: service.stats() };
}

/** Waits for a promise, or for the signal, with whose reason it rejects. */
function abortable(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
