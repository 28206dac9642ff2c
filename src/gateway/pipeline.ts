import type { WorkerWithDpRank } from "../core/keys.js";
import { GatewayError, KvrouteError } from "../errors.js";
import { SelectionService } from "../selection/service.js";
import { SessionTable } from "../selection/sessions.js";
import type { AdmissionQueue } from "./admission.js";
import type { Call } from "./call.js";
import { CallList } from "./call-list.js";
import type { Desk } from "./desk.js";
import { errorAnswer } from "./envelope.js";
import type { RouteExplanation } from "./explain.js";
import { Fleet, type FleetWorker } from "./fleet.js";
import { loadDesk, loadedDesk } from "./load-desk.js";
import { GatewayMetrics } from "./metrics.js";
import type { RouterSettings, WorkerOptions } from "./options.js";
import { PredictionTracker } from "./prediction.js";
import type { Prepared } from "./prepare.js";
import { CLIENT_GONE, type RequestEnd, RequestLog, type RequestRecord } from "./request-log.js";
import type { Station } from "./station.js";
import { abortable, Stop } from "./stop.js";
import { BYTES_PER_TOKEN, TokenRates } from "./token-rates.js";
import { type AdmissionStats, type Answer, type GatewayRequest, noEndings, noOutcomes } from "./types.js";
import type { Upstream } from "./upstream.js";

/** By how much the lease of a booking is longer than its call can be still. */
const LEASE_FACTOR = 2;

/** Takes requests through their lives: key, worker, booking, answer, end. It knows no server and no client. */
export class Pipeline implements Station {
  readonly settings: RouterSettings;
  readonly service: SelectionService;
  readonly fleet: Fleet;
  readonly rates = new TokenRates();
  readonly meter = new GatewayMetrics();
  readonly prediction: PredictionTracker;
  readonly outcomes = noOutcomes();
  readonly end = new Stop();
  /** Which worker keeps which response, for requests that go on from one. */
  readonly #stored = new SessionTable();
  readonly #calls = new CallList();
  #opened: Desk | undefined;
  /** Requests that have no answer yet, or whose answer has not ended. */
  #underWay = 0;
  #ids = 0;
  #isClosed = false;
  #failedCancels = 0;
  #onIdle: (() => void) | undefined;

  constructor(settings: RouterSettings) {
    const { clock, random, policy, index, blockBytes, stallTimeoutMs, firstByteTimeoutMs, breaker } = settings;
    this.settings = settings;
    this.service = new SelectionService({
      ...{ clock, random, policy, index },
      newId: () => `router:${++this.#ids}`, // others may book in the same service
      leaseMs: Math.max(stallTimeoutMs, firstByteTimeoutMs) * LEASE_FACTOR,
    });
    this.fleet = new Fleet({
      service: this.service,
      blockSize: blockBytes / BYTES_PER_TOKEN,
      breaker,
      maxInFlight: settings.maxInFlight,
      inFlight: () => this.inFlight,
    });
    this.prediction = new PredictionTracker({ onWarning: (warning) => settings.tell("onWarning", warning) });
  }

  get clock() {
    return this.settings.clock;
  }

  get random() {
    return this.settings.random;
  }

  // Only requests ask for these two, and no request comes but by the desk.

  get queue(): AdmissionQueue {
    return (this.#opened as Desk).queue;
  }

  get upstream(): Upstream {
    return (this.#opened as Desk).upstream;
  }

  /** Says what became of the requests that came to the queue. */
  get admissions(): AdmissionStats {
    return this.#opened?.queue.stats ?? { waiting: 0, ...noEndings() };
  }

  /** Counts the requests that are at a worker. */
  get inFlight(): number {
    return this.#calls.size;
  }

  get isClosed(): boolean {
    return this.#isClosed;
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
    const { settings, meter } = this;
    const log = new RequestLog({ request, settings, meter, onEnd: (outcome) => this.#ended(outcome) });
    this.#underWay++;
    try {
      if (this.#isClosed) throw closed();
      const desk = this.#desk ?? (await this.#loadDesk(request));
      return await desk.route(request, log);
    } catch (error) {
      const isGone = request.signal?.aborted === true;
      const { status = 500, code = undefined } = error instanceof KvrouteError ? error : {};
      log.end(isGone ? { status: CLIENT_GONE, outcome: "aborted" } : { status, outcome: log.outcome, error: code });
      request.signal?.throwIfAborted();
      if (code === undefined || code === "KVROUTE_GATEWAY_NOT_LOADED") throw error; // its cause says what is missing
      return errorAnswer(error as KvrouteError, request.path);
    }
  }

  /** Takes down a request that could not be read. */
  unread(request: Pick<GatewayRequest, "method" | "path">, begunAtMs: number, end: RequestEnd): void {
    const { settings, meter } = this;
    new RequestLog({ request, settings, meter, begunAtMs, onEnd: nothing }).end(end);
  }

  /** Says where a request would go now, and why. Books nothing. */
  async explain(request: GatewayRequest): Promise<RouteExplanation> {
    const desk = this.#desk ?? (await this.#loadDesk(request));
    return desk.explain(request);
  }

  addWorker(options: WorkerOptions, place: string): void {
    const worker = this.fleet.add(options, place);
    this.#opened?.addWorker(worker.settings);
  }

  /** Removes a worker at once. */
  removeWorker(id: string): void {
    this.fleet.remove(id);
    this.#stored.removeWorker(id);
    this.#opened?.removeWorker(id);
  }

  drain(id: string): FleetWorker {
    const worker = this.fleet.drain(id);
    this.#opened?.queue.wake();
    return worker;
  }

  /** Loads what answers requests, and begins to ask the workers for their health, if that is wanted. */
  watch(): void {
    if (this.#isClosed) return;
    if (this.#desk === undefined) loadDesk().then(() => this.watch(), nothing);
    else this.#desk.watch();
  }

  /** Takes no more requests. Resolves when those that there are have ended; the signal ends them at once. */
  async close(signal?: AbortSignal): Promise<void> {
    this.#isClosed = true;
    this.#opened?.close();
    if (this.#underWay === 0) return;
    const idle = new Promise<void>((resolve) => {
      const before = this.#onIdle;
      this.#onIdle = () => {
        before?.();
        resolve();
      };
    });
    const cut = () => {
      this.end.abort(closed());
      this.#opened?.queue.close(this.end.reason);
      for (const call of this.#calls) call.cut("failed", this.end.reason);
    };
    signal?.addEventListener("abort", cut);
    if (signal?.aborted) cut();
    await idle;
    signal?.removeEventListener("abort", cut);
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

  /** What answers requests, `undefined` while it is not loaded: afterwards no request waits for it. */
  get #desk(): Desk | undefined {
    const module = loadedDesk();
    if (module === undefined || this.#opened !== undefined) return this.#opened;
    this.#opened = new module.Desk(this);
    if (this.#isClosed) this.#opened.close(); // it comes for those who came before
    return this.#opened;
  }

  async #loadDesk({ signal }: GatewayRequest): Promise<Desk> {
    await abortable(loadDesk(), signal, this.end);
    return this.#desk as Desk;
  }

  #ended(outcome: RequestRecord["outcome"]): void {
    if (outcome !== "refused") this.outcomes[outcome]++;
    this.#underWay--;
    if (this.#underWay === 0) this.#onIdle?.();
  }
}

function closed(): GatewayError {
  return new GatewayError("KVROUTE_GATEWAY_CLOSED", "Expected an open router, got one that was closed.");
}

/** Whoever needs what has not loaded tries again, and is told; of what could not be read nothing is left. */
function nothing(): void {}
