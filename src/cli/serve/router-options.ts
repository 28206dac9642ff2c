import type { RouterOptions, WorkerOptions } from "../../gateway/router.js";
import type { ServeConfig } from "../config/options.js";

/** Turns a configuration into the options of a router. What is 0 for never is left out there. */
export function routerOptions(config: ServeConfig, workers: readonly WorkerOptions[]): RouterOptions {
  const { retryAttempts, breakerFailures, breakerOpenMs } = config;
  const { healthPath: path, healthIntervalMs: intervalMs, healthTimeoutMs: timeoutMs } = config;
  return {
    workers,
    policy: config.policy,
    maxInFlight: config.maxInFlight,
    maxQueued: config.maxQueued,
    queueTimeoutMs: config.queueTimeoutMs,
    retry: { attempts: retryAttempts },
    breaker: breakerFailures === 0 ? false : { failures: breakerFailures, openMs: breakerOpenMs },
    health: intervalMs === 0 ? undefined : { path, intervalMs, timeoutMs },
    firstByteTimeoutMs: config.firstByteTimeoutMs,
    stallTimeoutMs: config.stallTimeoutMs,
    maxBodyBytes: config.maxBodyBytes,
    blockBytes: config.blockBytes,
    receipts: config.receipts,
    forwardAffinityHeaders: config.forwardAffinityHeaders,
  };
}
