import type { KvrouteError } from "../../errors.js";
import type { Answer, GatewayRequest } from "../../gateway/types.js";
import { countOption } from "../../selection/policies/numbers.js";

/** What answers the requests below `/v1/`: a `Router` does. */
export interface Gateway {
  /** Rejects only where the signal of the request has aborted. */
  answer(request: GatewayRequest): Promise<Answer>;
  /** Answers a request that the server does not take in. Default: the server does, with the error. */
  refuse?(request: Pick<GatewayRequest, "method" | "path">, error: KvrouteError): Answer;
}

export interface GatewayServerOptions {
  readonly gateway: Gateway;
  /** Answers everything that is not below `/v1/`. Default: the gateway, which knows no such path. */
  readonly fallback?: ((request: Request) => Promise<Response>) | undefined;
  /** Keys of which a request below `/v1/` needs one, as a bearer token or in `x-api-key`. They go to no worker. Default: none. */
  readonly apiKeys?: readonly string[] | undefined;
  /** Opens what `fallback` guards, and is taken out of requests below `/v1/`. Default: none. */
  readonly controlToken?: string | undefined;
  /** Is told of each request below `/v1/` of which the gateway has not heard, or with which it has failed. */
  readonly onRefused?: ((refusal: Refusal) => void) | undefined;
  /** The address to listen at, 127.0.0.1 by default. */
  readonly host?: string | undefined;
  /** The port to listen at, by default one that is free. */
  readonly port?: number | undefined;
  /** Bytes of a request's body. 1 to 2^31 - 1, default 32 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Bytes of a request's headers. 1 to 2^31 - 1, default 16 KiB. */
  readonly maxHeaderBytes?: number | undefined;
  /** Connections at a time; further ones are closed. 1 to 1,048,576, default 16,384. */
  readonly maxConnections?: number | undefined;
  /** How long the headers of a request may take, and no longer than all of it. 1 to 2^31 - 1, default one minute. */
  readonly headersTimeoutMs?: number | undefined;
  /** How long a request may take to arrive. 1 to 2^31 - 1, default five minutes. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long an idle connection is kept. 1 to 2^31 - 1, default 65,000: longer than those before it keep theirs. */
  readonly keepAliveMs?: number | undefined;
  /** How long a client may read nothing of an answer that is there. 1 to 2^31 - 1, default ten minutes. */
  readonly sendTimeoutMs?: number | undefined;
}

/** A request that a server has answered itself. */
export interface Refusal {
  readonly method: string;
  /** Empty where there is none in what was asked for. */
  readonly path: string;
  readonly status: number;
  /** What was wrong; the client was told of it only if it is an error of this package. */
  readonly error: unknown;
}

const MS_MAX = 2 ** 31 - 1;
const BYTES_MAX = 2 ** 31 - 1;
const HEADER_BYTES_DEFAULT = 16_384;
const HEADERS_TIMEOUT_MS_DEFAULT = 60_000;
const REQUEST_TIMEOUT_MS_DEFAULT = 300_000;
const KEEP_ALIVE_MS_DEFAULT = 65_000;
/** How often the times of requests are looked at, where they are long. */
const CHECK_MS = 10_000;

/** Checks what is asked of Node's server, and fills in what is absent. */
export function serverOptions(options: GatewayServerOptions) {
  const { headersTimeoutMs = HEADERS_TIMEOUT_MS_DEFAULT, requestTimeoutMs = REQUEST_TIMEOUT_MS_DEFAULT } = options;
  return {
    headersTimeout: Math.min(countOption("headersTimeoutMs", headersTimeoutMs, 1, MS_MAX), requestTimeoutMs),
    requestTimeout: countOption("requestTimeoutMs", requestTimeoutMs, 1, MS_MAX),
    connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeout: countOption("keepAliveMs", options.keepAliveMs ?? KEEP_ALIVE_MS_DEFAULT, 1, MS_MAX),
    maxHeaderSize: countOption("maxHeaderBytes", options.maxHeaderBytes ?? HEADER_BYTES_DEFAULT, 1, BYTES_MAX),
  };
}
