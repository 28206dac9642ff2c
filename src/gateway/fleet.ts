import { OptionError, UnknownWorkerError } from "../errors.js";
import type { SelectionService } from "../selection/service.js";
import { Breaker, type BreakerSettings } from "./breaker.js";
import { type WorkerOptions, type WorkerSettings, workerSettings } from "./options.js";
import { noOutcomes, type Outcome } from "./types.js";

/** A worker and the requests that it has. */
export class FleetWorker {
  readonly settings: WorkerSettings;
  readonly outcomes = noOutcomes();
  /** Absent where breakers are off. */
  readonly breaker: Breaker | undefined;
  isDraining = false;
  /** What its health checks say, `undefined` while they have said nothing. */
  isHealthy: boolean | undefined;
  /** Tokens of prompts that were believed to be cached here, and those that engines found to be, where they said. */
  readonly cached = { predictedTokens: 0, actualTokens: 0 };
  #inFlight = 0;
  #onIdle: (() => void) | undefined;
  #idle: Promise<void> | undefined;

  constructor(settings: WorkerSettings, breaker: BreakerSettings | undefined, onBreaker: (isOpen: boolean) => void) {
    this.settings = settings;
    this.breaker = breaker === undefined ? undefined : new Breaker(breaker, onBreaker);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  begin(): void {
    this.#inFlight++;
  }

  end(outcome: Outcome): void {
    this.#inFlight--;
    this.outcomes[outcome]++;
    if (this.#inFlight > 0) return;
    this.#onIdle?.();
    this.#onIdle = undefined;
    this.#idle = undefined;
  }

  /** Resolves when the worker has no request. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    this.#idle ??= new Promise((resolve) => {
      this.#onIdle = resolve;
    });
    return this.#idle;
  }
}

/** Whom a request may go to, but for what the policy says. */
export interface Wanted {
  /** Empty where the body names none: then any worker may have it. */
  readonly model: string;
  /** The only worker that can serve it. */
  readonly keeper: FleetWorker | undefined;
  readonly nowMs: number;
  /** Workers that have failed it. */
  readonly tried?: ReadonlySet<FleetWorker> | undefined;
}

/** What keeps a worker from a request. */
export type Bar = "draining" | "model" | "unhealthy" | "breaker" | "tried" | "keeper" | "busy";

/** What the fleet is made with. */
export interface FleetParts {
  readonly service: SelectionService;
  /** Tokens in a block. */
  readonly blockSize: number;
  readonly breaker: BreakerSettings | undefined;
  /** Requests that all workers have at a time. */
  readonly maxInFlight: number;
  /** Counts the requests at workers, those included that were removed meanwhile. */
  readonly inFlight: () => number;
}

/** The workers of a router, and which of them may have a request. */
export class Fleet implements Iterable<FleetWorker> {
  readonly #parts: FleetParts;
  readonly #workers = new Map<string, FleetWorker>();
  /** Whether the service has workers that others have added: no request of the router's is for them. */
  hasStrangers = false;
  /** Is told when the breaker of a worker opens or closes. */
  onBreaker: ((id: string, isOpen: boolean) => void) | undefined;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  get workers(): readonly FleetWorker[] {
    return [...this.#workers.values()];
  }

  [Symbol.iterator](): Iterator<FleetWorker> {
    return this.#workers.values();
  }

  /**
   * Adds a worker.
   *
   * @param place names the worker in errors, such as `workers[0]`
   * @throws {OptionError} `KVROUTE_OPTION` if an option is wrong, or the id is taken
   * @throws {SelectionLimitError} `KVROUTE_CATALOG_FULL` if there are as many workers as there may be
   */
  add(options: WorkerOptions, place: string): FleetWorker {
    const settings = workerSettings(options, place);
    const { id, url, weight } = settings;
    const { service, blockSize, breaker } = this.#parts;
    if (this.#workers.has(id)) throw new OptionError(`Expected the ids of workers to differ, got "${id}" twice.`);
    service.workers.add({ workerId: id, endpoint: url, blockSize, weight });
    const worker: FleetWorker = new FleetWorker(settings, breaker, (isOpen) => {
      if (this.has(worker)) this.onBreaker?.(id, isOpen);
    });
    this.#workers.set(id, worker);
    return worker;
  }

  /** Removes a worker. The requests that it has go on without being booked. */
  remove(id: string): void {
    const { workers } = this.#parts.service;
    if (workers.get(this.get(id).settings.id) !== undefined) workers.remove(id); // else somebody else has removed it there
    this.#workers.delete(id);
  }

  /** Gives a worker no more requests. */
  drain(id: string): FleetWorker {
    const worker = this.get(id);
    const { workers } = this.#parts.service;
    if (workers.get(id) !== undefined) workers.drain(id);
    worker.isDraining = true;
    return worker;
  }

  /** Whether this very worker is still there. */
  has(worker: FleetWorker): boolean {
    return this.#workers.get(worker.settings.id) === worker;
  }

  find(id: string): FleetWorker | undefined {
    return this.#workers.get(id);
  }

  /** @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id */
  get(id: string): FleetWorker {
    const worker = this.#workers.get(id);
    if (worker === undefined) throw new UnknownWorkerError(id);
    return worker;
  }

  /** Whether a worker that has not failed a request could have it now. */
  isAnyoneLeft(wanted: Wanted): boolean {
    for (const worker of this) {
      const bar = this.barOf(worker, wanted);
      if (bar === undefined || bar === "busy") return true;
    }
    return false;
  }

  /** Whether any worker could have a request that is not for a model. */
  isReady(nowMs: number): boolean {
    const wanted = { model: "", keeper: undefined, nowMs };
    return this.isAnyoneLeft(wanted);
  }

  /**
   * Says what keeps a worker from a request, `undefined` where nothing does. What passes by itself comes last: who asks wants to
   * know what lasts.
   */
  barOf(worker: FleetWorker, { model, keeper, nowMs, tried }: Wanted): Bar | undefined {
    const { settings, breaker } = worker;
    if (settings.models !== undefined && model !== "" && !settings.models.has(model)) return "model";
    if (worker.isDraining) return "draining";
    if (keeper !== undefined && worker !== keeper) return "keeper";
    if (worker.isHealthy === false) return "unhealthy";
    if (breaker?.isAvailable(nowMs) === false) return "breaker";
    if (tried?.has(worker)) return "tried";
    if (worker.inFlight >= settings.maxInFlight || this.#parts.inFlight() >= this.#parts.maxInFlight) return "busy";
    return undefined;
  }
}
