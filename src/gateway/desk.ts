import type { WorkerWithDpRank } from "../core/keys.js";
import { GatewayError } from "../errors.js";
import { SessionTable } from "../selection/sessions.js";
import { AdmissionQueue } from "./admission.js";
import { targetOf } from "./attempt.js";
import { tooLarge } from "./body-limit.js";
import type { Call } from "./call.js";
import { CallList } from "./call-list.js";
import { nextReturnMs } from "./candidates.js";
import { explain, type RouteExplanation } from "./explain.js";
import type { FleetWorker } from "./fleet.js";
import { HealthChecks } from "./health.js";
import type { HealthSettings } from "./health-options.js";
import { listModels } from "./models.js";
import type { WorkerSettings } from "./options.js";
import { PredictionTracker } from "./prediction.js";
import { type Prepared, prepare } from "./prepare.js";
import type { RequestLog } from "./request-log.js";
import type { Front, Station } from "./station.js";
import type { DeskStats } from "./stats.js";
import { Tenants } from "./tenants.js";
import { TokenRates } from "./token-rates.js";
import { Trip } from "./trip.js";
import type { Answer, GatewayRequest } from "./types.js";
import { fetchUpstream, type Upstream } from "./upstream.js";
import { breakerWarning, healthWarning } from "./warnings.js";

/**
 * Takes requests through their lives: key, worker, booking, answer, end. It has what only they need, and is loaded with the
 * first of them.
 */
export class Desk implements Station {
  readonly settings: Front["settings"];
  readonly clock: Station["clock"];
  readonly random: Station["random"];
  readonly service: Front["service"];
  readonly fleet: Front["fleet"];
  readonly meter: Front["meter"];
  readonly end: Front["end"];
  readonly queue: AdmissionQueue;
  readonly upstream: Upstream;
  readonly rates = new TokenRates();
  readonly prediction: PredictionTracker;
  readonly #health: HealthChecks | undefined;
  /** Which worker keeps which response, for requests that go on from one. */
  readonly #stored = new SessionTable();
  readonly #tenants = new Tenants();
  readonly #calls = new CallList();
  #failedCancels = 0;

  constructor({ settings, service, fleet, meter, end }: Front) {
    const { clock, random, maxQueued, queueTimeoutMs, health, upstream = fetchUpstream(settings.fetch) } = settings;
    this.settings = settings;
    this.clock = clock;
    this.random = random;
    this.service = service;
    this.fleet = fleet;
    this.meter = meter;
    this.end = end;
    this.upstream = upstream;
    const nextFreeMs = () => nextReturnMs(fleet, clock.now());
    this.queue = new AdmissionQueue({ clock, maxQueued, queueTimeoutMs, nextFreeMs });
    this.prediction = new PredictionTracker({ onWarning: (warning) => settings.tell("onWarning", warning) });
    const { breaker } = settings;
    if (breaker !== undefined)
      fleet.onBreaker = (id, isOpen) => settings.tell("onWarning", breakerWarning(id, isOpen, breaker));
    if (health === undefined) return;
    const onChange = (id: string, isHealthy: boolean) => this.#noteHealth(id, isHealthy, health);
    this.#health = new HealthChecks({ settings: health, clock, random, upstream, onChange });
    for (const worker of fleet.workers) this.#health.add(worker.settings);
  }

  /** Counts the requests that are at a worker. */
  get inFlight(): number {
    return this.#calls.size;
  }

  get stats(): DeskStats {
    return {
      inFlight: this.inFlight,
      failedCancels: this.#failedCancels,
      queue: this.queue.stats,
      prediction: this.prediction.stats,
      bytesPerToken: this.rates.list(),
    };
  }

  /** Sends a request on its way, and gives what it is answered with. */
  async route(request: GatewayRequest, log: RequestLog): Promise<Answer> {
    this.#health?.start();
    checkPath(request.path);
    if (request.method === "GET" && request.path === "/v1/models") {
      const answer = await this.#models(request);
      log.end({ status: answer.status, outcome: "completed" });
      return answer;
    }
    const prepared = await this.#prepare(request);
    log.model = prepared.model;
    request.signal?.throwIfAborted();
    this.end.throwIfAborted();
    return new Trip(this, prepared, log).send();
  }

  /** Says where a request would go now, and why. Books nothing. */
  async explain(request: GatewayRequest): Promise<RouteExplanation> {
    const prepared = await this.#prepare(request);
    return explain(this, prepared);
  }

  addWorker(settings: WorkerSettings): void {
    this.#health?.add(settings);
    this.queue.wake();
  }

  removeWorker(id: string): void {
    this.#health?.remove(id);
    this.#stored.removeWorker(id);
    this.queue.wake(); // whoever waits for it alone is told
  }

  /** Begins to ask the workers for their health, if that is wanted. */
  watch(): void {
    this.#health?.start();
  }

  /** Asks nobody any more. The requests that there are go on. */
  close(): void {
    this.#health?.close();
  }

  /** Ends the requests that there are, once `end` has aborted. */
  cut(): void {
    this.queue.close(this.end.reason);
    for (const call of this.#calls) call.cut("failed", this.end.reason);
  }

  keeperOf({ tenant, storedId }: Prepared): FleetWorker | undefined {
    if (storedId === undefined) return undefined;
    const keeper = this.#stored.find(tenant, storedId, this.clock.now())?.workerId;
    const worker = keeper === undefined ? undefined : this.fleet.find(String(keeper));
    return worker?.isDraining === true ? undefined : worker;
  }

  keep({ tenant }: Prepared, answerId: string, worker: FleetWorker, rank: WorkerWithDpRank): void {
    if (!this.fleet.has(worker)) return; // it was removed meanwhile: one of its id would be another
    this.#stored.record(tenant, answerId, rank, this.clock.now());
  }

  begun(call: Call): void {
    this.#calls.add(call);
    if (this.end.aborted) call.cut("failed", this.end.reason);
  }

  settled(call: Call): void {
    this.#calls.delete(call);
    this.queue.wake();
  }

  cancelFailed(): void {
    this.#failedCancels++;
  }

  #prepare(request: GatewayRequest): Prepared | Promise<Prepared> {
    const { maxBodyBytes, blockBytes } = this.settings;
    checkPath(request.path);
    if ((request.bytes?.length ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    return prepare(request, blockBytes, this.#tenants);
  }

  #models(request: GatewayRequest): Promise<Answer> {
    const { settings, fleet, end, clock } = this;
    const workers = fleet.workers.filter(({ isDraining }) => !isDraining);
    const targets = workers.map((worker) => targetOf(worker, request, settings));
    return listModels({ clock, upstream: this.upstream, signals: [request.signal, end], targets });
  }

  #noteHealth(id: string, isHealthy: boolean, health: HealthSettings): void {
    const worker = this.fleet.find(id);
    if (worker === undefined) return;
    const wasTakenForHealthy = worker.isHealthy !== false;
    worker.isHealthy = isHealthy;
    if (isHealthy !== wasTakenForHealthy) this.settings.tell("onWarning", healthWarning(id, isHealthy, health));
    this.queue.wake();
  }
}

function checkPath(path: string): void {
  if (path.startsWith("/v1/") && !leadsElsewhere(path)) return;
  throw new GatewayError("KVROUTE_GATEWAY_PATH", `Expected a path that begins with /v1/, got ${path}.`);
}

/** Whether dots lead a path out of `/v1/`, as whoever reads it as part of a URL takes them. */
function leadsElsewhere(path: string): boolean {
  return /\.|%2e/i.test(path) && !new URL(`http://kvroute${path}`).pathname.startsWith("/v1/");
}
