import type { Logger } from "pino";
import { type KvrouteError, ServeError } from "../../errors.js";
import type { WorkerOptions } from "../../gateway/options.js";
import { type Answer, createRouter, type GatewayRequest, type Router } from "../../gateway/router.js";
import { createGatewayApi } from "../../http/gateway-api.js";
import { metricsText } from "../../http/metrics.js";
import { ApiKeys } from "../../node/gateway/api-keys.js";
import { type Gateway, type GatewayServer, serveGateway } from "../../node/serve-gateway.js";
import { type UndiciUpstream, undiciUpstream } from "../../node/undici-upstream.js";
import type { ServeConfig } from "../config/options.js";
import { systemCode } from "../io.js";
import { logControl, logRefusal, logRequest } from "./log-requests.js";
import { routerOptions } from "./router-options.js";

/** After how many seconds a client may ask another server, or this one's successor. */
const RETRY_AFTER_SECONDS = "1";

/** A router that listens. */
export class RouterServer {
  readonly #router: Router;
  readonly #gateway: LastOrders;
  readonly #upstream: UndiciUpstream;
  readonly #server: GatewayServer;

  private constructor(router: Router, gateway: LastOrders, upstream: UndiciUpstream, server: GatewayServer) {
    this.#router = router;
    this.#gateway = gateway;
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
      onWarning: ({ name, worker, message }) => log.warn({ name, worker }, message),
    });
    const gateway = new LastOrders(router);
    try {
      const server = await listen(config, router, gateway, log);
      router.watch();
      return new RouterServer(router, gateway, upstream, server);
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
    this.#gateway.isStopping = true;
    await this.#router.close({ signal });
    await this.#server.close({ signal });
    await this.#upstream.close();
    return cut;
  }
}

async function listen(config: ServeConfig, router: Router, gateway: Gateway, log: Logger): Promise<GatewayServer> {
  const { host, port, maxBodyBytes, apiKeys, control, controlToken } = config;
  const api = createGatewayApi({
    router: apiKeys.length === 0 ? router : behindKeys(router, new ApiKeys(apiKeys)),
    controlToken: control ? controlToken : undefined,
    metrics: metricsText,
    onError: (error) => log.error(error),
  });
  try {
    return await serveGateway({
      gateway,
      fallback: (request) => logControl(log, request, () => api.fetch(request)),
      onRefused: (refusal) => logRefusal(log, refusal),
      apiKeys: apiKeys.length === 0 ? undefined : apiKeys,
      controlToken,
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

/** A router that tells whoever comes too late when to come again. */
class LastOrders implements Gateway {
  readonly #router: Router;
  isStopping = false;

  constructor(router: Router) {
    this.#router = router;
  }

  async answer(request: GatewayRequest): Promise<Answer> {
    const isLate = this.isStopping;
    const answer = await this.#router.answer(request);
    if (isLate && answer.status === 503) answer.headers.set("retry-after", RETRY_AFTER_SECONDS);
    return answer;
  }

  refuse(request: Pick<GatewayRequest, "method" | "path">, error: KvrouteError): Answer {
    return this.#router.refuse(request, error);
  }
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
