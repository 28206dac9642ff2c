import { GatewayError, KvrouteError } from "../errors.js";
import { SelectionService } from "../selection/service.js";
import type { Desk } from "./desk.js";
import { errorAnswer } from "./envelope.js";
import type { RouteExplanation } from "./explain.js";
import { Fleet, type FleetWorker } from "./fleet.js";
import { loadDesk, loadedDesk } from "./load-desk.js";
import { GatewayMetrics } from "./metrics.js";
import { BYTES_PER_TOKEN, type RouterSettings, type WorkerOptions } from "./options.js";
import { CLIENT_GONE, type RequestEnd, RequestLog, type RequestRecord } from "./request-log.js";
import type { Front } from "./station.js";
import { type DeskStats, noDeskStats } from "./stats.js";
import { abortable, Stop } from "./stop.js";
import { type Answer, type GatewayRequest, noOutcomes } from "./types.js";

/** By how much the lease of a booking is longer than its call can be still. */
const LEASE_FACTOR = 2;

/**
 * Hands requests to the desk, which takes them through their lives, and answers for how they end. It has what there is
 * before the first of them, and knows no server and no client.
 */
export class Pipeline implements Front {
  readonly settings: RouterSettings;
  readonly service: SelectionService;
  readonly fleet: Fleet;
  readonly meter = new GatewayMetrics();
  readonly outcomes = noOutcomes();
  readonly end = new Stop();
  #opened: Desk | undefined;
  /** Requests that have no answer yet, or whose answer has not ended. */
  #underWay = 0;
  #ids = 0;
  #isClosed = false;
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
      inFlight: () => this.#opened?.inFlight ?? 0,
    });
  }

  get clock() {
    return this.settings.clock;
  }

  get deskStats(): DeskStats {
    return this.#opened?.stats ?? noDeskStats();
  }

  get isClosed(): boolean {
    return this.#isClosed;
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
      this.#opened?.cut();
    };
    signal?.addEventListener("abort", cut);
    if (signal?.aborted) cut();
    await idle;
    signal?.removeEventListener("abort", cut);
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
