import type { Hono } from "hono";
import { describe } from "../core/describe.js";
import { HttpRequestError, OptionError } from "../errors.js";
import { errorAnswer } from "../gateway/envelope.js";
import type { HandlerContext, Router, RouterStats } from "../gateway/router.js";
import { responseOf } from "../gateway/web.js";
import { errorResponse } from "./answer.js";
import { GatewayWorkers } from "./gateway-workers.js";
import { METRICS_CONTENT_TYPE, metricsText } from "./metrics.js";
import { gatewayPaths, metricsPath } from "./openapi-gateway.js";
import { gatewayOperations } from "./operations/gateway.js";
import { appOf, checkServing, refuseMethod, type ServingOptions } from "./operations-app.js";
import { API_VERSION } from "./selection-api.js";
import { withoutToken } from "./token.js";

export interface GatewayApiOptions extends ServingOptions {
  readonly router: Router;
  /**
   * Opens all but the gateway, its health and its metrics to those who send it as a bearer token, and goes to no worker.
   * Without it these paths are not there.
   */
  readonly controlToken?: string | undefined;
  /** Bytes of a body that is not for a worker: those have the router's limit. Default 8 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Writes what stands at `/metrics`, for whoever asks; with `false` the path is not there. Default `metricsText`. */
  readonly metrics?: ((stats: RouterStats) => string) | false | undefined;
}

/** A router over HTTP, and the selection service that it books with. */
export interface GatewayApi {
  /** Answers a request, whatever is wrong with it. It can be mounted wherever a fetch handler can. */
  readonly fetch: (request: Request, env?: unknown, context?: unknown) => Promise<Response>;
}

const DESCRIPTION = `A gateway before engines, and the selection service that it books with, under the names of NVIDIA \
Dynamo's. What stands below /v1 is the engines'; errors there have the envelope of their protocol.`;
const GATEWAY = "/v1/";
const METRICS = "/metrics";
/** The status of a request whose client has gone; nobody reads it. */
const CLIENT_GONE = 499;

/**
 * Puts a router behind HTTP: what is below `/v1/` goes to its workers, and beside it stand its health, its metrics, and with a
 * control token its workers and the selection service that it books with.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function createGatewayApi(options: GatewayApiOptions): GatewayApi {
  const { router, metrics, onError, controlToken } = options;
  if (typeof router?.handler !== "function" || typeof router.explain !== "function") {
    throw new OptionError("Expected router to be a router of createRouter.");
  }
  if (metrics !== undefined && metrics !== false && typeof metrics !== "function") {
    throw new OptionError(`Expected metrics to be a function or false, got ${describe(metrics)}.`);
  }
  checkServing(options);
  const app = applicationOf(options);
  return {
    fetch: async (request, env, context) => {
      const { pathname } = new URL(request.url);
      const isForEngines = pathname.startsWith(GATEWAY);
      try {
        if (isForEngines) return await router.handler(withoutToken(request, controlToken), contextOf(context));
        return await app.fetch(request, env as object, context as never);
      } catch (error) {
        if (request.signal.aborted) return new Response(null, { status: CLIENT_GONE });
        tell(onError, error);
        return isForEngines ? responseOf(errorAnswer(failed(), pathname)) : errorResponse(failed());
      }
    },
  };
}

/** Makes what stands beside the gateway. */
function applicationOf({ router, metrics = metricsText, onError, ...serving }: GatewayApiOptions): Hono {
  const workers = new GatewayWorkers(router);
  const paths = { ...gatewayPaths(), ...(metrics !== false && metricsPath(METRICS)) };
  const app = appOf({
    ...serving,
    operations: gatewayOperations(router, workers),
    service: router.selection,
    workers,
    about: { title: "kvroute gateway", version: API_VERSION, description: DESCRIPTION, paths },
    onError: (error) => tell(onError, error),
  });
  app.onError((error) => {
    throw error;
  });
  if (metrics === false) return app;
  app.get(METRICS, () => new Response(metrics(router.stats()), { headers: { "content-type": METRICS_CONTENT_TYPE } }));
  app.all(METRICS, () => refuseMethod(["GET"]));
  return app;
}

/** Tells of an error. Who is told may fail as well, and the client is answered all the same. */
function tell(onError: GatewayApiOptions["onError"], error: unknown): void {
  try {
    onError?.(error);
  } catch {
    // there is nobody left to tell
  }
}

function failed(): HttpRequestError {
  return new HttpRequestError(
    "KVROUTE_HTTP_INTERNAL",
    "Expected the request to be served, but the gateway has failed.",
  );
}

/** Takes of what a runtime passes beside a request what the router can use. */
function contextOf(context: unknown): HandlerContext | undefined {
  const { waitUntil } = (context ?? {}) as Partial<HandlerContext>;
  return typeof waitUntil === "function" ? (context as HandlerContext) : undefined;
}
