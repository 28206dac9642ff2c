import { GatewayError } from "../errors.js";
import { AdmissionQueue } from "./admission.js";
import { targetOf } from "./attempt.js";
import { tooLarge } from "./body-limit.js";
import { explain, type RouteExplanation } from "./explain.js";
import { HealthChecks } from "./health.js";
import { listModels } from "./models.js";
import type { WorkerSettings } from "./options.js";
import { type Prepared, prepare } from "./prepare.js";
import type { RequestLog } from "./request-log.js";
import type { Station } from "./station.js";
import { Tenants } from "./tenants.js";
import { Trip } from "./trip.js";
import type { Answer, GatewayRequest } from "./types.js";
import { fetchUpstream, type Upstream } from "./upstream.js";

/** Takes in the requests of a router, and sees to what only they need. It is loaded with the first of them. */
export class Desk {
  /** Those who wait for a worker. */
  readonly queue: AdmissionQueue;
  /** Reaches the workers. */
  readonly upstream: Upstream;
  readonly #station: Station;
  readonly #tenants = new Tenants();
  readonly #health: HealthChecks | undefined;

  constructor(station: Station) {
    const { settings, fleet } = station;
    const { clock, random, maxQueued, queueTimeoutMs, health } = settings;
    this.#station = station;
    const nextFreeMs = () => fleet.nextReturnMs(clock.now());
    this.queue = new AdmissionQueue({ clock, maxQueued, queueTimeoutMs, nextFreeMs });
    const { upstream = fetchUpstream(settings.fetch) } = settings;
    this.upstream = upstream;
    if (health === undefined) return;
    const onChange = (id: string, isHealthy: boolean) => this.#noteHealth(id, isHealthy);
    this.#health = new HealthChecks({ settings: health, clock, random, upstream, onChange });
    for (const worker of fleet.workers) this.#health.add(worker.settings);
  }

  /** Sends a request on its way, and gives what it is answered with. */
  async route(request: GatewayRequest, log: RequestLog): Promise<Answer> {
    const station = this.#station;
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
    station.end.throwIfAborted();
    return new Trip(station, prepared, log).send();
  }

  /** Says where a request would go now, and why. Books nothing. */
  async explain(request: GatewayRequest): Promise<RouteExplanation> {
    const prepared = await this.#prepare(request);
    return explain(this.#station, prepared);
  }

  addWorker(settings: WorkerSettings): void {
    this.#health?.add(settings);
    this.queue.wake();
  }

  removeWorker(id: string): void {
    this.#health?.remove(id);
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

  #prepare(request: GatewayRequest): Prepared | Promise<Prepared> {
    const { maxBodyBytes, blockBytes } = this.#station.settings;
    checkPath(request.path);
    if ((request.bytes?.length ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
    return prepare(request, blockBytes, this.#tenants);
  }

  #models(request: GatewayRequest): Promise<Answer> {
    const { settings, fleet, end, clock } = this.#station;
    const workers = fleet.workers.filter(({ isDraining }) => !isDraining);
    const targets = workers.map((worker) => targetOf(worker, request, settings));
    return listModels({ clock, upstream: this.upstream, signals: [request.signal, end], targets });
  }

  #noteHealth(id: string, isHealthy: boolean): void {
    const worker = this.#station.fleet.find(id);
    if (worker === undefined) return;
    worker.isHealthy = isHealthy;
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
