import { Attempt } from "./attempt.js";
import { candidatesOf } from "./candidates.js";
import type { FleetWorker, Wanted } from "./fleet.js";
import type { Prepared } from "./prepare.js";
import { decisionOf, modelTokens, type Receipt, stamp } from "./receipt.js";
import type { RequestLog } from "./request-log.js";
import { type RetryReason, retryDelayMs, type Verdict } from "./retry.js";
import type { Station } from "./station.js";
import type { Answer } from "./types.js";
import { sleep } from "./wait.js";

/** An attempt that is to be followed by another one. */
interface Retry {
  readonly reason: RetryReason;
  /** How long to wait before: 0 where another worker can have the request. */
  readonly pauseMs: number;
}

/** One request on its way to an answer: at one worker, or, until one answers it, at one after the other. */
export class Trip {
  readonly #station: Station;
  readonly #prepared: Prepared;
  readonly #log: RequestLog;
  /** Workers that have failed it since all had a chance. */
  #tried: Set<FleetWorker> | undefined;
  #attempts = 0;
  /** Time in the queue. */
  #queuedMs = 0;
  /** Up to when that is counted, while it waits there. */
  #waitsSinceMs: number | undefined;
  /** Time with workers that did not answer, and between tries. */
  #triedMs = 0;
  /** Time that all else has taken, as the metrics have it already. */
  #routingMs = 0;
  #receipt: Receipt | undefined;
  #retry: Retry | undefined;

  constructor(station: Station, prepared: Prepared, log: RequestLog) {
    this.#station = station;
    this.#prepared = prepared;
    this.#log = log;
  }

  /**
   * Gives the answer of a worker, whatever its status, as soon as it has begun.
   *
   * @throws {UpstreamError} if no worker answered
   * @throws {GatewayError} `KVROUTE_GATEWAY_MODEL`, {NoWorkerError} `KVROUTE_NO_WORKER`, {QueueError} if none may have it
   */
  async send(): Promise<Answer> {
    const { clock, meter, settings, end } = this.#station;
    const { signal } = this.#prepared.request;
    for (;;) {
      const entered = this.#enter();
      const attempt = entered instanceof Attempt ? entered : await this.#wait(entered);
      if (this.#retry !== undefined) meter.retried(this.#retry.reason);
      const sentAtMs = clock.now();
      const answer = await attempt.send((verdict) => this.#isToBeRetried(attempt.worker, verdict));
      if (answer !== undefined) {
        if (settings.receipts) stamp(answer.headers, this.#receipt as Receipt);
        return answer;
      }
      const { pauseMs } = this.#retry as Retry;
      if (pauseMs > 0) await sleep(clock, pauseMs, signal, end);
      this.#triedMs += clock.now() - sentAtMs;
    }
  }

  /** Books the request on a worker that can have it, or lets it wait for one. */
  #enter(): Attempt | Promise<Attempt> {
    return this.#station.queue.enter(() => this.#begin(), this.#prepared.request.signal, this.#group());
  }

  /** Waits in the queue until it is booked. */
  async #wait(entered: Promise<Attempt>): Promise<Attempt> {
    const { clock, meter } = this.#station;
    const before = this.#queuedMs;
    this.#waitsSinceMs = clock.now();
    try {
      const attempt = await entered;
      meter.queued((this.#queuedMs - before) / 1000);
      return attempt;
    } catch (error) {
      this.#noteWait(); // turned away, it has waited all the same
      throw error;
    }
  }

  #noteWait(): void {
    if (this.#waitsSinceMs === undefined) return;
    const nowMs = this.#station.clock.now();
    this.#queuedMs += nowMs - this.#waitsSinceMs;
    this.#waitsSinceMs = nowMs;
    this.#log.queuedMs = this.#queuedMs;
  }

  /** Names the requests that can go to the same workers: when one of them has to wait, all have to. */
  #group(): string | undefined {
    if (this.#tried !== undefined) return undefined; // its own
    const keeper = this.#station.keeperOf(this.#prepared);
    const { model } = this.#prepared; // which may be called anything, also what names a keeper
    return keeper === undefined ? `any ${model}` : JSON.stringify([model, keeper.settings.id]);
  }

  /** Books the request on the best worker there is; gives `undefined` while all that could have it are busy. */
  #begin(): Attempt | undefined {
    const { service, settings, fleet, rates } = this.#station;
    const { select, model, request } = this.#prepared;
    this.#noteWait();
    request.signal?.throwIfAborted();
    const wanted = this.#wanted();
    if (this.#tried !== undefined && !fleet.isAnyoneLeft(wanted)) this.#tried.clear(); // they have gone since
    const allowedWorkerIds = candidatesOf(fleet, wanted);
    if (allowedWorkerIds === "busy") return undefined;
    const explain = settings.onDecision !== undefined;
    const { sequenceHashes, islTokens, session, tenant, affinityKey } = select;
    const asked = { sequenceHashes, islTokens, session, tenant, affinityKey, allowedWorkerIds, explain };
    const selection = service.selectAndReserve(asked);
    const worker = fleet.find(String(selection.worker.workerId));
    if (worker === undefined) {
      service.free(selection.selectionId); // it is a worker of somebody else's
      fleet.hasStrangers = true;
      return this.#begin();
    }
    const bytesPerToken = rates.get(model);
    const predictedTokens = modelTokens(selection.cachedTokens, bytesPerToken);
    const [station, prepared, log] = [this.#station, this.#prepared, this.#log];
    const attempt = new Attempt({ station, prepared, worker, selection, predictedTokens, log });
    this.#waitsSinceMs = undefined;
    this.#attempts++;
    this.#tell({
      worker: worker.settings.id,
      decision: decisionOf(selection, fleet),
      model,
      promptTokens: modelTokens(selection.islTokens, bytesPerToken),
      predictedCachedTokens: predictedTokens,
      attempt: this.#attempts,
      queuedMs: this.#queuedMs,
      routingMs: Math.max(0, this.#log.elapsedMs - this.#queuedMs - this.#triedMs),
      explanation: selection.explanation,
    });
    return attempt;
  }

  #wanted(): Wanted {
    const { clock } = this.#station;
    const keeper = this.#station.keeperOf(this.#prepared);
    return { model: this.#prepared.model, keeper, nowMs: clock.now(), tried: this.#tried };
  }

  #tell(receipt: Receipt): void {
    const { meter, settings } = this.#station;
    this.#receipt = receipt;
    this.#log.routed(receipt);
    meter.routed((receipt.routingMs - this.#routingMs) / 1000);
    this.#routingMs = receipt.routingMs;
    if (receipt.decision !== undefined) meter.decided(receipt.decision);
    settings.tell("onDecision", receipt);
  }

  #isToBeRetried(worker: FleetWorker, verdict: Verdict): boolean {
    const { settings, fleet, random } = this.#station;
    if (settings.retry === undefined || verdict.retry === undefined) return false;
    this.#tried ??= new Set();
    this.#tried.add(worker);
    const position = { attempt: this.#attempts, verdict, hasOther: fleet.isAnyoneLeft(this.#wanted()) };
    const pauseMs = retryDelayMs(settings.retry, position, random);
    if (pauseMs === undefined) return false;
    this.#retry = { reason: verdict.retry, pauseMs };
    return true;
  }
}
