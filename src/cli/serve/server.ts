import type { Logger } from "pino";
import { KvrouteError, ServeError } from "../../errors.js";
import type { WorkerOptions } from "../../gateway/options.js";
import {
  type Answer,
  createRouter,
  type GatewayRequest,
  type RequestRecord,
  type Router,
} from "../../gateway/router.js";
import { createGatewayApi } from "../../http/gateway-api.js";
import { metricsText } from "../../http/metrics.js";
import { ApiKeys } from "../../node/gateway/api-keys.js";
import { type GatewayServer, type Refusal, serveGateway } from "../../node/serve-gateway.js";
import { type UndiciUpstream, undiciUpstream } from "../../node/undici-upstream.js";
import type { ServeConfig } from "../config/options.js";
import { systemCode } from "../io.js";
import { routerOptions } from "./router-options.js";

/** After how many seconds a client may ask another server, or this one's successor. */
const RETRY_AFTER_SECONDS = "1";

/** A router that listens. */
export class RouterServer {
  readonly #router: Router;
  readonly #upstream: UndiciUpstream;
  readonly #server: GatewayServer;

  private constructor(router: Router, upstream: UndiciUpstream, server: GatewayServer) {
    this.#router = router;
    this.#upstream = upstream;
    this.#server = server;
  }

  /**
   * Starts to listen.
   *
   * @throws {ServeError} `KVROUTE_SERVE_ADDRESS` if it cannot
   */
  static async start(config: ServeConfig, workers: readonly WorkerOptions[], log: Logger): Promise<RouterServer> {
    const upstream = undiciUpstream();
    const router = createRouter({
      ...routerOptions(config, workers),
      upstream,
      onRequest: (record) => logRequest(log, record),
      onWarning: ({ name, message }) => log.warn({ name }, message),
    });
    try {
      const server = await listen(config, router, log);
      router.watch();
      return new RouterServer(router, upstream, server);
    } catch (error) {
      await upstream.close();
      throw error;
    }
  }

  get url(): string {
    return this.#server.url;
  }

  /** Counts the requests that have not been answered. */
  get inFlight(): number {
    return this.#server.inFlight;
  }

  /**
   * Refuses requests, waits until those that there are have ended, and stops listening. The signal breaks them off.
   *
   * @returns how many requests were broken off
   */
  async stop(signal: AbortSignal): Promise<number> {
    let cut = 0;
    const count = () => {
      cut = this.inFlight;
    };
    if (signal.aborted) count();
    else signal.addEventListener("abort", count, { once: true });
    await this.#router.close({ signal });
    await this.#server.close({ signal });
    await this.#upstream.close();
    return cut;
  }
}

async function listen(config: ServeConfig, router: Router, log: Logger): Promise<GatewayServer> {
  const { host, port, maxBodyBytes, apiKeys, control, controlToken } = config;
  const api = createGatewayApi({
    router: apiKeys.length === 0 ? router : behindKeys(router, new ApiKeys(apiKeys)),
    controlToken: control ? controlToken : undefined,
    metrics: metricsText,
    onError: (error) => log.error(error),
  });
  try {
    return await serveGateway({
      gateway: { answer: (request) => answer(router, request) },
      fallback: (request) => logged(log, request, () => api.fetch(request)),
      onRefused: (refusal) => logRefusal(log, refusal),
      apiKeys: apiKeys.length === 0 ? undefined : apiKeys,
      host,
      port,
      maxBodyBytes,
      sendTimeoutMs: config.stallTimeoutMs,
    });
  } catch (cause) {
    throw addressError(host, port, cause);
  }
}

/** Has a router explain requests as it would have them from a server with keys: without one they go nowhere. */
function behindKeys(router: Router, keys: ApiKeys): Router {
  const explain = async (request: GatewayRequest) => {
    const headers = request.headers.copy();
    const tenant = keys.admit(headers);
    return router.explain({ ...request, headers, tenant });
  };
  return Object.create(router, { explain: { value: explain } });
}

/** Answers a request; one that comes too late is told when to come again. */
async function answer(router: Router, request: GatewayRequest): Promise<Answer> {
  const given = await router.answer(request);
  const isLate = given.status === 503 && !given.headers.has("retry-after");
  if (isLate) given.headers.set("retry-after", RETRY_AFTER_SECONDS);
  return given;
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "the system does not allow it; ports below 1024 are often for root alone",
  EADDRINUSE: "the port is in use; --port takes another one, and 0 any that is free",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no such host",
};

function addressError(host: string, port: number, cause: unknown): unknown {
  const problem = PROBLEMS[systemCode(cause) ?? ""];
  if (problem === undefined) return cause;
  return new ServeError("KVROUTE_SERVE_ADDRESS", `Expected to listen at ${host} port ${port}, but ${problem}.`, {
    cause,
  });
}

/** Logs a request: what went wrong on this side of the client stands out. */
function logRequest(log: Logger, record: RequestRecord): void {
  const isTrouble = record.outcome === "failed" || record.outcome === "stalled" || record.status >= 500;
  const fields = Object.entries(record).map(([name, value]) => [name, name.endsWith("Ms") ? rounded(value) : value]);
  log[isTrouble ? "warn" : "info"](Object.fromEntries(fields), "request");
}

/** Logs a request that the router has not heard of, say because it has no key. */
function logRefusal(log: Logger, { method, path, status, error }: Refusal): void {
  const isKnown = error instanceof KvrouteError;
  const fields = { method, path, status, outcome: "refused", error: isKnown ? error.code : undefined };
  if (isKnown) log.info(fields, "request");
  else log.error({ ...fields, err: error }, "request");
}

/** Logs what may change something beside the engines' paths; reading is done every few seconds, and says nothing. */
async function logged(log: Logger, request: Request, answer: () => Promise<Response>): Promise<Response> {
  const response = await answer();
  const { pathname: path } = new URL(request.url);
  const { method } = request;
  if (method !== "GET" && method !== "HEAD") log.info({ method, path, status: response.status }, "control");
  return response;
}

/** Rounds a time to microseconds. */
function rounded(timeMs: number | undefined): number | undefined {
  return timeMs === undefined ? undefined : Number(timeMs.toFixed(3));
}
