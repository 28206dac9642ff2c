import type { BreakerSettings } from "./breaker.js";
import type { HealthSettings } from "./health-options.js";
import type { RouterWarning } from "./options.js";

/** Tells that the breaker of a worker has opened, or is closed again. */
export function breakerWarning(worker: string, isOpen: boolean, { failures, openMs }: BreakerSettings): RouterWarning {
  if (!isOpen) return { name: "KVROUTE_WARNING_BREAKER_CLOSED", worker, message: `Worker "${worker}" answers again.` };
  const why = `its last requests have failed (breaker.failures: ${failures})`;
  const message = `Expected worker "${worker}" to answer, but ${why}: it gets none for ${openMs} ms.`;
  return { name: "KVROUTE_WARNING_BREAKER_OPENED", worker, message };
}

/** Tells that a worker fails its health checks, or passes them again. */
export function healthWarning(worker: string, isHealthy: boolean, { failures }: HealthSettings): RouterWarning {
  if (isHealthy) {
    const message = `Worker "${worker}" passes its health checks again.`;
    return { name: "KVROUTE_WARNING_WORKER_HEALTHY", worker, message };
  }
  const why = `its last ones have failed (health.failures: ${failures})`;
  const message = `Expected worker "${worker}" to pass its health checks, but ${why}: it gets no request.`;
  return { name: "KVROUTE_WARNING_WORKER_UNHEALTHY", worker, message };
}
