import { GatewayError, KvrouteError } from "../errors.js";
import { SelectionService } from "../selection/service.js";
import { Attempt, type Prepared, targetOf } from "./attempt.js";
import { Booking } from "./booking.js";
import type { Call } from "./call.js";
import { dialectOf } from "./dialect.js";
import { errorAnswer } from "./envelope.js";
import { Fleet } from "./fleet.js";
import { listModels } from "./models.js";
import type { RouterSettings } from "./options.js";
import { type PromptPath, promptKeyOf } from "./prompt.js";
import { sessionOf, tenantOf } from "./session.js";
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
    const prepared = await this.#prepare(request);
    signal?.throwIfAborted();
    this.#checkOpen();
    return this.#attempt(prepared);
  }

  async #prepare(request: GatewayRequest): Promise<Prepared> {
    const { method, path, headers, bytes = new Uint8Array(0) } = request;
    const dialect = dialectOf(method, path);
    if (dialect === undefined) {
      return { request, dialect, model: "", promptBytes: 0, select: { sequenceHashes: [], islTokens: 1 } };
    }
    const tenant = await tenantOf(headers);
    const key = promptKeyOf(path as PromptPath, bytes, { blockBytes: this.#settings.blockBytes, tenant });
    const { model, promptBytes, sequenceHashes, fingerprint } = key;
    const select = {
      sequenceHashes,
      islTokens: Math.max(1, Math.ceil(promptBytes / BYTES_PER_TOKEN)),
      session: sessionOf(headers, key.parsed, fingerprint)?.id,
      tenant,
      affinityKey: fingerprint,
    };
    return { request, dialect, model, promptBytes, select };
  }

  /** Sends a request to the best worker there is, once. */
  #attempt(prepared: Prepared): Promise<Answer> {
    const allowedWorkerIds = this.fleet.candidates(prepared.model);
    const { selectionId, worker } = this.service.selectAndReserve({ ...prepared.select, allowedWorkerIds });
    const attempt = new Attempt({
      settings: this.#settings,
      rates: this.rates,
      booking: new Booking(this.service, selectionId),
      worker: this.fleet.get(String(worker.workerId)),
      prepared,
      onBegun: (call) => this.#calls.add(call),
      onSettled: (call, outcome) => this.#settled(call, outcome),
      onCancelFailed: () => {
        this.#failedCancels++;
      },
    });
    return attempt.send();
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
