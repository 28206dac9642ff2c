import type { SelectionStats } from "../selection/service.js";
import type { BreakerState } from "./breaker.js";
import type { FleetWorker } from "./fleet.js";
import type { GatewayCounts } from "./metrics.js";
import type { Pipeline } from "./pipeline.js";
import type { PredictionStats } from "./prediction.js";
import { type AdmissionStats, noEndings, type OutcomeCounts } from "./types.js";

/** How the circuit breaker of a worker stands. */
export interface BreakerStats {
  readonly state: BreakerState;
  /** How often it has opened. */
  readonly openings: number;
}

/** How a worker stands. */
export interface RouterWorkerStats {
  readonly id: string;
  readonly isDraining: boolean;
  /** What its health checks say, `undefined` where nobody asks or none has answered yet. */
  readonly isHealthy: boolean | undefined;
  /** `undefined` where breakers are off. */
  readonly breaker: BreakerStats | undefined;
  readonly inFlight: number;
  /** Requests that it has been given, those in flight included. */
  readonly requests: number;
  readonly outcomes: OutcomeCounts;
  /** Tokens of prompts that it has yet to compute, as they are booked. */
  readonly activePrefillTokens: number;
  /** Blocks that its requests have in use, as they are booked. */
  readonly activeBlocks: number;
  /** Tokens of prompts that were believed to be cached, of requests of which the engine has told how many were. */
  readonly predictedCachedTokens: number;
  /** What the engine has told. */
  readonly cachedTokens: number;
}

/** What there is of a router from the first request on. */
export interface DeskStats {
  /** Requests that are at a worker. */
  readonly inFlight: number;
  /** Bodies of workers that could not be cancelled. */
  readonly failedCancels: number;
  readonly queue: AdmissionStats;
  /** How far predictions of cached tokens were off where engines have reported them. */
  readonly prediction: PredictionStats;
  /** Bytes of prompt in a token, by model, as learnt from what engines count. */
  readonly bytesPerToken: Readonly<Record<string, number>>;
}

/** How a router stands. */
export interface RouterStats extends GatewayCounts, DeskStats {
  /** How those ended that were at a worker. */
  readonly outcomes: OutcomeCounts;
  readonly workers: readonly RouterWorkerStats[];
  /** Bookings, which are leases, sessions and the index. */
  readonly selection: SelectionStats;
}

/** Says of what begins with the first request that it has not begun. */
export function noDeskStats(): DeskStats {
  return {
    inFlight: 0,
    failedCancels: 0,
    queue: { waiting: 0, ...noEndings() },
    prediction: {
      reports: 0,
      meanErrorTokens: 0,
      meanAbsoluteErrorTokens: 0,
      predictedShare: 0,
      actualShare: 0,
      isMismatched: false,
      mismatches: 0,
    },
    bytesPerToken: {},
  };
}

/** What of a router its stats are read from. */
export type RouterParts = Pick<Pipeline, "clock" | "outcomes" | "fleet" | "service" | "meter" | "deskStats">;

/** Says how a router stands. */
export function statsOf(parts: RouterParts): RouterStats {
  const { clock, outcomes, fleet, service, meter, deskStats } = parts;
  const loads = new Map(
    service.loads().flatMap(({ loads }) => loads.map((load) => [String(load.worker.workerId), load] as const)),
  );
  const nowMs = clock.now();
  return {
    ...meter.snapshot(),
    ...deskStats,
    outcomes: { ...outcomes },
    workers: fleet.workers.map((worker) => workerStats(worker, loads.get(worker.settings.id), nowMs)),
    selection: service.stats(),
  };
}

type Load = Pick<RouterWorkerStats, "activePrefillTokens" | "activeBlocks">;

function workerStats(worker: FleetWorker, load: Load | undefined, nowMs: number): RouterWorkerStats {
  const { settings, isDraining, isHealthy, breaker, inFlight, outcomes, cached } = worker;
  const { activePrefillTokens = 0, activeBlocks = 0 } = load ?? {};
  return {
    id: settings.id,
    isDraining,
    isHealthy,
    breaker: breaker === undefined ? undefined : { state: breaker.state(nowMs), openings: breaker.openings },
    inFlight,
    requests: Object.values(outcomes).reduce((sum, count) => sum + count, inFlight),
    outcomes: { ...outcomes },
    activePrefillTokens,
    activeBlocks,
    predictedCachedTokens: cached.predictedTokens,
    cachedTokens: cached.actualTokens,
  };
}
