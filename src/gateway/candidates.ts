import { GatewayError, NoWorkerError } from "../errors.js";
import type { Bar, Fleet, FleetWorker, Wanted } from "./fleet.js";

/** What is told of each worker that cannot have a request, and of some, by what keeps them from it. */
const BARS: Readonly<Record<Bar, { readonly reason: string; readonly noun: string }>> = {
  draining: { reason: "it is draining", noun: "draining" },
  model: { reason: "it serves other models", noun: "for other models" },
  unhealthy: { reason: "it has failed its health checks", noun: "unhealthy" },
  breaker: { reason: "its circuit breaker is open", noun: "behind open circuit breakers" },
  tried: { reason: "it has failed this request", noun: "that have failed it" },
  keeper: { reason: "another worker keeps what the request goes on from", noun: "without what it goes on from" },
  busy: { reason: "it has as many requests as it takes (maxInFlight)", noun: "busy" },
};

/**
 * Lists the ids of the workers that may have a request: `undefined` for all of them, `"busy"` where those that could have
 * it have as many as they take.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_MODEL` if none serves the model
 * @throws {NoWorkerError} `KVROUTE_NO_WORKER` if those that do are draining, or have failed too often
 */
export function candidatesOf(fleet: Fleet, wanted: Wanted): readonly string[] | undefined | "busy" {
  if (!fleet.hasStrangers && areAllFree(fleet, wanted)) return undefined;
  const free: string[] = [];
  const barred = new Map<Bar, number>();
  for (const worker of fleet) {
    const bar = fleet.barOf(worker, wanted);
    if (bar === undefined) free.push(worker.settings.id);
    else barred.set(bar, (barred.get(bar) ?? 0) + 1);
  }
  if (free.length > 0) return free;
  if (barred.has("busy")) return "busy";
  throw nobody(fleet, wanted, barred);
}

/** Says what keeps a worker from a request, `undefined` where nothing does. */
export function reasonAgainst(worker: FleetWorker, fleet: Fleet, wanted: Wanted): string | undefined {
  const bar = fleet.barOf(worker, wanted);
  return bar === undefined ? undefined : BARS[bar].reason;
}

/** Tells when the first rest of a worker will be over, `Infinity` where none ends by time alone. */
export function nextReturnMs(fleet: Fleet, nowMs: number): number {
  let firstMs = Number.POSITIVE_INFINITY;
  for (const { breaker } of fleet) {
    const atMs = breaker?.nextAvailableMs(nowMs) ?? nowMs;
    if (atMs > nowMs && atMs < firstMs) firstMs = atMs;
  }
  return firstMs;
}

function areAllFree(fleet: Fleet, wanted: Wanted): boolean {
  for (const worker of fleet) if (fleet.barOf(worker, wanted) !== undefined) return false;
  return true;
}

function nobody(fleet: Fleet, wanted: Wanted, barred: ReadonlyMap<Bar, number>): GatewayError | NoWorkerError {
  const { model, nowMs } = wanted;
  const { workers } = fleet;
  if (barred.get("model") === workers.length) {
    return new GatewayError("KVROUTE_GATEWAY_MODEL", `Expected a model that a worker serves, got "${model}".`);
  }
  const counts = [...barred].map(([bar, count]) => `${count} ${BARS[bar].noun}`).join(", ");
  const resting = workers.filter((worker) => fleet.barOf(worker, wanted) === "breaker");
  const waitMs = Math.min(...resting.map(({ breaker }) => (breaker?.nextAvailableMs(nowMs) ?? nowMs) - nowMs));
  const retryAfterMs = Number.isFinite(waitMs) ? waitMs : undefined; // nobody knows when a probe ends
  return new NoWorkerError(`of ${workers.length} none can have the request: ${counts}`, { retryAfterMs });
}
