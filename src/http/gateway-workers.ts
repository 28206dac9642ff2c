import type { WorkerId } from "../core/keys.js";
import { HttpRequestError, OptionError, UnknownWorkerError } from "../errors.js";
import { type WorkerOptions, workerSettings } from "../gateway/options.js";
import type { Router } from "../gateway/router.js";
import { settingsOf } from "../selection/catalog/registration.js";
import type { WorkerCatalog, WorkerRecord, WorkerRegistration, WorkerUpdate } from "../selection/workers.js";
import type { WorkerRegistry } from "./registry.js";

/** What is said of a worker of a router, beyond what its selection service keeps. */
export interface GatewayRegistration extends WorkerRegistration {
  readonly models?: readonly string[] | undefined;
  readonly maxInFlight?: number | undefined;
}

/** The partition of a router's workers. */
const PARTITION = { modelName: "default", routingGroup: "default" };

/** Changes the workers of a router and those of its selection service alike. All ids are texts: in a path digits are one, too. */
export class GatewayWorkers implements WorkerRegistry {
  readonly #router: Router;
  readonly #catalog: WorkerCatalog;

  constructor(router: Router) {
    this.#router = router;
    this.#catalog = router.selection.workers;
  }

  /**
   * Adds a worker, or replaces the one with its id, which then starts empty.
   *
   * @throws {HttpRequestError} `KVROUTE_HTTP_FIELD` if the router could not reach it, or has blocks of another size
   */
  add(registration: GatewayRegistration): WorkerRecord {
    const { workerId, endpoint = "", blockSize, weight, models, maxInFlight } = registration;
    const { maxNumBatchedTokens, totalKvBlocks, taints } = registration;
    const worker = { id: String(workerId), url: endpoint, weight, models, maxInFlight };
    settingsOf(registration);
    checkWorker(worker);
    const isOfRouter = this.#isOfRouter(worker.id);
    const isKnown = this.#catalog.get(worker.id) !== undefined;
    if (isKnown) checkBlockSize(blockSize, this.#blockSize);
    if (isOfRouter) this.#router.removeWorker(worker.id);
    else if (isKnown) this.#catalog.remove(worker.id);
    this.#router.addWorker(worker);
    this.#checkOrTakeBack(worker.id, blockSize);
    return this.#catalog.update(worker.id, { maxNumBatchedTokens, totalKvBlocks, taints });
  }

  update(workerId: WorkerId, update: WorkerUpdate): WorkerRecord {
    const { weight, maxNumBatchedTokens, totalKvBlocks, taints } = update;
    return this.#catalog.update(this.#known(workerId), { weight, maxNumBatchedTokens, totalKvBlocks, taints });
  }

  drain(workerId: WorkerId): WorkerRecord {
    const id = this.#known(workerId);
    if (!this.#isOfRouter(id)) return this.#catalog.drain(id);
    this.#router.drain(id).catch(() => {}); // nobody waits here until its requests have ended
    return this.#catalog.get(id) as WorkerRecord;
  }

  remove(workerId: WorkerId): WorkerRecord {
    const id = this.#known(workerId);
    if (!this.#isOfRouter(id)) return this.#catalog.remove(id);
    const record = this.#catalog.get(id) as WorkerRecord;
    this.#router.removeWorker(id);
    return { ...record, lifecycle: "unschedulable", notSchedulableReasons: ["it was removed"] };
  }

  /** Whether the router sends requests to it: whoever made the router may have workers of their own in its books. */
  #isOfRouter(id: string): boolean {
    return this.#router.stats().workers.some((worker) => worker.id === id);
  }

  /** Tokens in a block of the router, which is told with its workers. */
  get #blockSize(): number | undefined {
    return this.#catalog.partition(PARTITION)?.blockSize;
  }

  #checkOrTakeBack(id: string, blockSize: number | undefined): void {
    try {
      checkBlockSize(blockSize, this.#blockSize);
    } catch (error) {
      this.#router.removeWorker(id); // it was new, and nothing has happened meanwhile
      throw error;
    }
  }

  #known(workerId: WorkerId): string {
    const id = String(workerId);
    if (this.#catalog.get(id) === undefined) throw new UnknownWorkerError(id);
    return id;
  }
}

function checkWorker(worker: WorkerOptions): void {
  try {
    workerSettings(worker, "the worker");
  } catch (error) {
    if (error instanceof OptionError) throw new HttpRequestError("KVROUTE_HTTP_FIELD", error.message, { cause: error });
    throw error;
  }
}

function checkBlockSize(given: number | undefined, wanted: number | undefined): void {
  if (given === undefined || given === wanted) return;
  const message = `Expected block_size to be absent, or ${wanted}, which is the router's, got the number ${given}.`;
  throw new HttpRequestError("KVROUTE_HTTP_FIELD", message);
}
