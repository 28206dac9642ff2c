import { GatewayError, OptionError, UnknownWorkerError, WorkersBusyError } from "../errors.js";
import type { SelectionService } from "../selection/service.js";
import { type WorkerOptions, type WorkerSettings, workerSettings } from "./options.js";
import { noOutcomes, type Outcome } from "./types.js";

/** A worker and the requests that it has. */
export class FleetWorker {
  readonly settings: WorkerSettings;
  readonly outcomes = noOutcomes();
  isDraining = false;
  #inFlight = 0;
  #onIdle: (() => void) | undefined;
  #idle: Promise<void> | undefined;

  constructor(settings: WorkerSettings) {
    this.settings = settings;
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

/** The workers of a router, and which of them may have a request. */
export class Fleet {
  readonly #service: SelectionService;
  readonly #blockSize: number;
  readonly #workers = new Map<string, FleetWorker>();
  /** Whether any worker may have every request: then nobody need be asked. */
  #isPlain = true;

  constructor(service: SelectionService, blockSize: number) {
    this.#service = service;
    this.#blockSize = blockSize;
  }

  get workers(): readonly FleetWorker[] {
    return [...this.#workers.values()];
  }

  /**
   * Adds a worker.
   *
   * @param place names the worker in errors, such as `workers[0]`
   * @throws {OptionError} `KVROUTE_OPTION` if an option is wrong, or the id is taken
   * @throws {SelectionLimitError} `KVROUTE_CATALOG_FULL` if there are as many workers as there may be
   */
  add(options: WorkerOptions, place: string): void {
    const settings = workerSettings(options, place);
    const { id, url, weight } = settings;
    if (this.#workers.has(id)) throw new OptionError(`Expected the ids of workers to differ, got "${id}" twice.`);
    this.#service.workers.add({ workerId: id, endpoint: url, blockSize: this.#blockSize, weight });
    this.#workers.set(id, new FleetWorker(settings));
    this.#settle();
  }

  /** Removes a worker. The requests that it has go on without being booked. */
  remove(id: string): void {
    this.#service.workers.remove(this.get(id).settings.id);
    this.#workers.delete(id);
    this.#settle();
  }

  /** Gives a worker no more requests. */
  drain(id: string): FleetWorker {
    const worker = this.get(id);
    this.#service.workers.drain(id);
    worker.isDraining = true;
    return worker;
  }

  /** Whether this very worker is still there. */
  has(worker: FleetWorker): boolean {
    return this.#workers.get(worker.settings.id) === worker;
  }

  /** @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id */
  get(id: string): FleetWorker {
    const worker = this.#workers.get(id);
    if (worker === undefined) throw new UnknownWorkerError(id);
    return worker;
  }

  /**
   * Lists the ids of the workers that may have a request for a model, `undefined` for all of them. Without a model any may.
   *
   * @throws {GatewayError} `KVROUTE_GATEWAY_MODEL` if none serves the model
   * @throws {WorkersBusyError} `KVROUTE_WORKERS_BUSY` if all that do have as many requests as they take
   */
  candidates(model: string): readonly string[] | undefined {
    if (this.#isPlain) return undefined;
    const able = this.workers.filter(({ settings }) => model === "" || (settings.models?.has(model) ?? true));
    if (able.length === 0) {
      throw new GatewayError("KVROUTE_GATEWAY_MODEL", `Expected a model that a worker serves, got "${model}".`);
    }
    const free = able.filter(({ inFlight, settings }) => inFlight < settings.maxInFlight);
    if (free.length === 0) throw new WorkersBusyError(able.length);
    return free.map(({ settings }) => settings.id);
  }

  #settle(): void {
    this.#isPlain = this.workers.every(
      ({ settings }) => settings.models === undefined && settings.maxInFlight === Number.POSITIVE_INFINITY,
    );
  }
}
