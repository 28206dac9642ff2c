import { countOption } from "../../selection/policies/numbers.js";
import type { GatewayServerOptions } from "../serve-gateway.js";

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
