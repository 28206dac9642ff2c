import type { Clock } from "../clock.js";
import type { WorkerWithDpRank } from "../core/keys.js";
import type { SelectionService } from "../selection/service.js";
import type { AdmissionQueue } from "./admission.js";
import type { Call } from "./call.js";
import type { Fleet, FleetWorker } from "./fleet.js";
import type { GatewayMetrics } from "./metrics.js";
import type { RouterSettings } from "./options.js";
import type { PredictionTracker } from "./prediction.js";
import type { Prepared } from "./prepare.js";
import type { StopSignal } from "./stop.js";
import type { TokenRates } from "./token-rates.js";
import type { Upstream } from "./upstream.js";

/** What a router has before anything is asked of it. */
export interface Front {
  readonly settings: RouterSettings;
  readonly service: SelectionService;
  readonly fleet: Fleet;
  readonly meter: GatewayMetrics;
  /** Ends all that is under way, once the router was told to wait no longer. */
  readonly end: StopSignal;
}

/** What the requests of a router have in common. */
export interface Station extends Front {
  readonly clock: Clock;
  random(): number;
  readonly queue: AdmissionQueue;
  readonly upstream: Upstream;
  readonly rates: TokenRates;
  readonly prediction: PredictionTracker;
  /** The worker that alone can serve a request, since it keeps what the request goes on from. */
  keeperOf(prepared: Prepared): FleetWorker | undefined;
  /** Remembers which worker keeps an answer. */
  keep(prepared: Prepared, answerId: string, worker: FleetWorker, rank: WorkerWithDpRank): void;
  begun(call: Call): void;
  settled(call: Call): void;
  cancelFailed(): void;
}
