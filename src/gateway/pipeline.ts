import { GatewayError, KvrouteError, WorkersBusyError } from "../errors.js";
import { type RoutingConstraints, SelectionService } from "../selection/service.js";
import { SessionTable } from "../selection/sessions.js";
import { Attempt, targetOf } from "./attempt.js";
import { Booking } from "./booking.js";
import type { Call } from "./call.js";
import { errorAnswer } from "./envelope.js";
import { Fleet } from "./fleet.js";
import { listModels } from "./models.js";
import type { RouterSettings } from "./options.js";
import { type Prepared, prepare } from "./prepare.js";
import { Tenants } from "./tenants.js";
import { BYTES_PER_TOKEN, TokenRates } from "./token-rates.js";
import { type Answer, type GatewayRequest, noOutcomes, type Outcome } from "./types.js";

/** By how much the lease of a booking is longer than its call can be still. */
const LEASE_FACTOR = 2;

/** Takes requests through their lives: key, worker, booking, answer, end. It knows no server and no client. */
export class Pipeline {
  readonly service: SelectionService;
  readonly fleet: Fleet;
  readonly rates = new TokenRates();
  readonly outcomes = noOutcomes();
  readonly #settings: RouterSettings;
  /** Which worker keeps which response, for requests that go on from one. */
  readonly #stored = new SessionTable();
  readonly #tenants = new Tenants();
  readonly #calls = new Set<Call>();
  #ids = 0;
  #isClosed = false;
  #failedCancels = 0;
  #onIdle: (() => void) | undefined;

  constructor(settings: RouterSettings) {
    const { clock, random, policy, index, blockBytes, stallTimeoutMs } = settings;
    this.#settings = settings;
    this.service = new SelectionService({
      ...{ clock, random, policy, index },
      newId: () => `${++this.#ids}`,
      leaseMs: stallTimeoutMs * LEASE_FACTOR,
    });
    this.fleet = new Fleet(this.service, blockBytes / BYTES_PER_TOKEN);
  }

  /** Counts the requests that are at a worker. */
  get inFlight(): number {
    return this.#calls.size;
  }

  /** Counts the bodies of workers that could not be cancelled. */
  get failedCancels(): number {
    return this.#failedCancels;
  }

  /**
   * Answers a request: with what a worker says, or with an error in the envelope of the request's protocol. Rejects where the
   * caller has gone, with the reason of the signal.
   */
  async handle(request: GatewayRequest): Promise<Answer> {
    try {
      return await this.#route(request);
    } catch (error) {
      request.signal?.throwIfAborted();
      if (error instanceof KvrouteError) return errorAnswer(error, request.path);
      throw error;
    }
  }

  /** Removes a worker at once. */
  removeWorker(id: string): void {
    this.fleet.remove(id);
    this.#stored.removeWorker(id);
  }

  /** Takes no more requests. Resolves when those that there are have ended; the signal ends them at once. */
  async close(signal?: AbortSignal): Promise<void> {
    this.#isClosed = true;
    if (this.#calls.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      const before = this.#onIdle;
      this.#onIdle = () => {
        before?.();
        resolve();
      };
    });
    const cut = () => {
      for (const call of this.#calls) call.cut("failed", closed());
    };
    signal?.addEventListener("abort", cut);
    if (signal?.aborted) cut();
    await idle;
    signal?.removeEventListener("abort", cut);
  }

  async #route(request: GatewayRequest): Promise<Answer> {
    const { method, path, bytes, signal } = request;
    const { maxBodyBytes, clock, upstream } = this.#settings;
    this.#checkOpen();
    if (!path.startsWith("/v1/")) {
      throw new GatewayError("KVROUTE_GATEWAY_PATH", `Expected a path that begins with /v1/, got ${path}.`);
    }
    checkSize(bytes?.length ?? 0, maxBodyBytes);
    if (method === "GET" && path === "/v1/models") {
      const workers = this.fleet.workers.filter(({ isDraining }) => !isDraining);
      return listModels({
        clock,
        upstream,
        signal,
        targets: workers.map((worker) => targetOf(worker, request, this.#settings)),
      });
    }
    const prepared = await prepare(request, this.#settings.blockBytes, this.#tenants);
    signal?.throwIfAborted();
    this.#checkOpen();
    return this.#attempt(prepared);
  }

  /** Sends a request to the best worker there is, once. */
  #attempt(prepared: Prepared): Promise<Answer> {
    const constraints = this.#constraintsOf(prepared);
    const { selectionId, worker } = this.service.selectAndReserve({ ...prepared.select, ...constraints });
    const fleetWorker = this.fleet.get(String(worker.workerId));
    const attempt = new Attempt({
      settings: this.#settings,
      rates: this.rates,
      booking: new Booking(this.service, selectionId),
      worker: fleetWorker,
      prepared,
      onStored: (id) => {
        if (!this.fleet.has(fleetWorker)) return; // it was removed meanwhile: one of its id would be another
        this.#stored.record(prepared.tenant, id, worker, this.#settings.clock.now());
      },
      onBegun: (call) => this.#calls.add(call),
      onSettled: (call, outcome) => this.#settled(call, outcome),
      onCancelFailed: () => {
        this.#failedCancels++;
      },
    });
    return attempt.send();
  }

  #constraintsOf({ model, tenant, storedId }: Prepared): RoutingConstraints {
    const allowedWorkerIds = this.fleet.candidates(model);
    const keeper = storedId && this.#stored.find(tenant, storedId, this.#settings.clock.now())?.workerId;
    if (keeper === undefined || keeper === "" || this.fleet.get(String(keeper)).isDraining) return { allowedWorkerIds };
    if (allowedWorkerIds?.includes(String(keeper)) === false) throw new WorkersBusyError(1);
    return { pinnedWorker: { workerId: keeper } };
  }

  #settled(call: Call, outcome: Outcome): void {
    this.#calls.delete(call);
    this.outcomes[outcome]++;
    if (this.#calls.size === 0) this.#onIdle?.();
  }

  #checkOpen(): void {
    if (this.#isClosed) throw closed();
  }
}

function checkSize(bytes: number, most: number): void {
  if (bytes > most) throw tooLarge(most);
}

/** The error of a body that is too long. */
export function tooLarge(most: number): GatewayError {
  const message = `Expected a body of at most ${most} bytes (maxBodyBytes), got a longer one.`;
  return new GatewayError("KVROUTE_GATEWAY_BODY_TOO_LARGE", message);
}

function closed(): GatewayError {
  return new GatewayError("KVROUTE_GATEWAY_CLOSED", "Expected an open router, got one that was closed.");
}
