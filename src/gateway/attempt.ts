import { describe } from "../core/describe.js";
import { GatewayError, KvrouteError, UpstreamError } from "../errors.js";
import type { Selection } from "../selection/service.js";
import { Booking } from "./booking.js";
import type { BreakerPermit } from "./breaker.js";
import { Call } from "./call.js";
import { CallBody } from "./call-body.js";
import type { FleetWorker } from "./fleet.js";
import { BYTES_PER_TOKEN, type RouterSettings } from "./options.js";
import { idOf, type Prepared } from "./prepare.js";
import { CLIENT_GONE, type RequestLog } from "./request-log.js";
import { type AttemptFailure, sendFailureOf, type Verdict, verdictOf } from "./retry.js";
import { CREDENTIALS, withoutAffinityHeaders } from "./session.js";
import type { Station } from "./station.js";
import { type AnswerReader, isEventStream, readerOf } from "./stream.js";
import type { Answer, GatewayRequest, Outcome } from "./types.js";
import type { UpstreamRequest } from "./upstream.js";

/** Blocks of output that are booked for one chunk at most: whatever an engine counts, a chunk costs a bounded time. */
const OUTPUT_BLOCKS_PER_CHUNK = 64;

/** What an attempt is made with. */
export interface AttemptParts {
  readonly station: Station;
  readonly prepared: Prepared;
  readonly worker: FleetWorker;
  /** What the request is booked as. */
  readonly selection: Selection & { readonly selectionId: string };
  /** Tokens of the prompt that the worker is believed to have cached. */
  readonly predictedTokens: number;
  readonly log: RequestLog;
}

/** Sends a request to the worker on which it is booked, and ends the booking with it. */
export class Attempt {
  readonly worker: FleetWorker;
  readonly #parts: AttemptParts;
  readonly #booking: Booking;
  readonly #permit: BreakerPermit | undefined;
  readonly #call: Call;
  #reader: AnswerReader | undefined;
  #hasPrefilled = false;
  #outputBlocks = 0;
  #status = 0;
  #isStream = false;
  /** What follows from an answer that is an error. */
  #verdict: Verdict | undefined;
  /** Whether it failed by what is none of the worker's doing. */
  #isOurs = false;
  #readAtMs = 0;
  #outputTokens = 0;
  /** Whether the caller has the answer. */
  #isPassed = false;
  #outcome: Outcome | undefined;

  /** Begins: from here on the call holds the booking, and settles it however it ends. */
  constructor(parts: AttemptParts) {
    this.#parts = parts;
    this.worker = parts.worker;
    const { station, worker, prepared, selection } = parts;
    const { settings, clock, service } = station;
    this.#booking = new Booking(service, selection.selectionId);
    worker.begin();
    this.#permit = worker.breaker?.begin(clock.now());
    this.#call = new Call({
      clock,
      firstByteTimeoutMs: settings.firstByteTimeoutMs,
      stallTimeoutMs: settings.stallTimeoutMs,
      caller: prepared.request.signal,
      workerId: worker.settings.id,
      onSettled: (outcome) => this.#settled(outcome),
      onAlive: () => this.#booking.touch(),
    });
    station.begun(this.#call);
    this.#keepAwake();
    this.#call.begin();
  }

  /**
   * Gives the worker's answer, or `undefined` where it was given up to be tried again.
   *
   * @param isToBeRetried is asked once where the answer is an error, or where none came
   * @throws {UpstreamError} `KVROUTE_UPSTREAM_UNREACHABLE`, `KVROUTE_UPSTREAM_BROKEN`, `KVROUTE_UPSTREAM_STALLED` if none
   *   came; the reason of the caller's signal where that ended it
   */
  async send(isToBeRetried: (verdict: Verdict) => boolean): Promise<Answer | undefined> {
    const { station, worker, prepared } = this.#parts;
    const { settings } = station;
    const { path } = prepared.request;
    const call = this.#call;
    try {
      const { method, url, headers, bytes } = targetOf(worker, prepared.request, settings);
      const sent = station.upstream.send({ method, url, headers, bytes, signal: call.signal });
      const answer = await call.wait(sent, dropLate);
      const { status } = answer;
      this.#status = status;
      if (status >= 400) {
        this.#verdict = verdictOf({ path, status, headers: answer.headers });
        if (isToBeRetried(this.#verdict)) return this.#giveUp(answer);
      }
      const passed = this.#passOn(answer);
      // Where no stream has begun, an answer that breaks before its first byte can still be an error with a status.
      if (!this.#isStream) await passed.body?.begin();
      this.#isPassed = true;
      if (this.#outcome !== undefined) this.#logEnd(this.#outcome);
      return passed;
    } catch (error) {
      this.#isOurs = error instanceof KvrouteError && !(error instanceof UpstreamError);
      const told = this.#fail(error);
      const mayAsk = !this.#isOurs && !call.isAbandoned && this.#verdict === undefined;
      if (mayAsk && isToBeRetried(verdictOf({ path, failure: this.#failureOf(error) }))) return undefined;
      throw told;
    }
  }

  /** Asks the runtime to stay. One that refuses fails no request: the booking has to end all the same. */
  #keepAwake(): void {
    const { station, prepared } = this.#parts;
    try {
      prepared.request.waitUntil?.(this.#call.settled);
    } catch (error) {
      const message = `Expected waitUntil to take a promise, but it threw: ${describe(error)}.`;
      station.settings.tell("onWarning", { name: "KVROUTE_WARNING_WAIT_UNTIL", message });
    }
  }

  /** Lets an answer go that another try is to take the place of. */
  #giveUp({ body }: Answer): undefined {
    this.#call.settle("rejected");
    this.#call.close();
    body?.cancel().catch(() => this.#parts.station.cancelFailed());
  }

  /** Ends the call. Returns what its caller is told. */
  #fail(error: unknown): unknown {
    const call = this.#call;
    call.settle(error instanceof GatewayError ? "rejected" : "failed"); // what cannot be sent is the caller's fault
    call.close();
    return call.isAbandoned || error instanceof KvrouteError ? error : unreachable(this.worker.settings.id, error);
  }

  #passOn({ status, statusText, headers, body }: Answer): Answer & { readonly body?: CallBody } {
    const { prepared, station } = this.#parts;
    const call = this.#call;
    call.begun();
    const isError = status >= 400;
    // Others may have the worker again: they need not wait for the end of a long answer.
    if (!isError && this.#permit?.isProbe) {
      this.#permit.success(station.clock.now());
      station.queue.wake();
    }
    const isStream = isEventStream(headers);
    this.#isStream = isStream;
    if (!isStream && !isError) this.#endPrefill();
    if (body === undefined) {
      call.settle(isError ? "rejected" : "completed");
      call.close();
      return { status, statusText, headers };
    }
    const reader = readerOf(prepared.dialect, status, headers);
    this.#reader = reader;
    const workerId = this.worker.settings.id;
    const onRead = () => this.#noteRead(isError);
    const onCancelFailed = () => station.cancelFailed();
    const passed = new CallBody({ source: body, reader, call, workerId, isError, onRead, onCancelFailed });
    if (isStream) headers.delete("content-length"); // its farewell may come on top
    return { status, statusText, headers, body: passed };
  }

  #noteRead(isError: boolean): void {
    if (isError || this.#reader?.hasOutput === false) return; // it has computed nothing
    this.#endPrefill();
    const { station, prepared, log } = this.#parts;
    const { rates, settings, clock, meter } = station;
    const outputTokens = this.#reader?.outputTokens ?? 0;
    const nowMs = clock.now();
    if (this.#isStream) log.firstToken(nowMs);
    const more = outputTokens - this.#outputTokens;
    if (more > 0 && this.#outputTokens > 0) meter.tokens((nowMs - this.#readAtMs) / 1000, more);
    if (more > 0) this.#readAtMs = nowMs;
    this.#outputTokens = outputTokens;
    const most = this.#outputBlocks + OUTPUT_BLOCKS_PER_CHUNK;
    const outputBlocks = Math.min(Math.floor((outputTokens * rates.get(prepared.model)) / settings.blockBytes), most);
    for (; this.#outputBlocks < outputBlocks; this.#outputBlocks++) this.#booking.outputBlock();
  }

  #endPrefill(): void {
    if (this.#hasPrefilled) return;
    this.#hasPrefilled = true;
    this.#booking.prefillComplete();
  }

  #settled(outcome: Outcome): void {
    const { station, log } = this.#parts;
    try {
      this.#learn();
    } finally {
      this.#booking.free();
      this.#judge(outcome);
      this.worker.end(outcome);
      station.settled(this.#call);
      this.#outcome = outcome;
      log.outcome = outcome;
      if (this.#isPassed || outcome === "aborted") this.#logEnd(outcome);
    }
  }

  /** Until the caller has the answer, its end may be followed by another try. */
  #logEnd(outcome: Outcome): void {
    const status = outcome === "aborted" && !this.#isPassed ? CLIENT_GONE : this.#status;
    this.#parts.log.end({ status, outcome, usage: this.#reader?.usage });
  }

  /** Tells the worker's breaker. What the client or its request is to blame for says nothing of the worker. */
  #judge(outcome: Outcome): void {
    // A caller who does not read is not the worker's fault.
    const isFailure = (outcome === "failed" && !this.#isOurs) || (outcome === "stalled" && this.#call.isWaiting);
    const answered = outcome === "completed" ? "success" : (this.#verdict?.end ?? "neutral");
    this.#permit?.end(isFailure ? "failure" : answered, this.#parts.station.clock.now());
  }

  #failureOf(error: unknown): AttemptFailure {
    const code = error instanceof KvrouteError ? error.code : undefined;
    if (code === "KVROUTE_UPSTREAM_STALLED") return this.#status === 0 ? "first-byte-timeout" : "stalled";
    return code === undefined ? sendFailureOf(error) : "broken";
  }

  /** Takes from the answer where it is kept, how long the tokens of its model are, and how much of the prompt was cached. */
  #learn(): void {
    const { station, prepared, predictedTokens, selection } = this.#parts;
    const { rates } = station;
    const storedId = idOf(this.#reader?.responseId);
    if (storedId !== undefined) station.keep(prepared, storedId, this.worker, selection.worker);
    const usage = this.#reader?.usage;
    if (usage === undefined) return;
    station.meter.used(usage);
    rates.learn(prepared.model, prepared.promptBytes, usage);
    const { cachedTokens, promptTokens } = usage;
    if (cachedTokens === undefined) return;
    // Workers are compared in tokens of one size, whatever the model makes of them.
    const cachedBytes = Math.min(cachedTokens * rates.get(prepared.model), prepared.promptBytes);
    this.#booking.reportCachedTokens(Math.round(cachedBytes / BYTES_PER_TOKEN));
    const { cached } = this.worker;
    cached.predictedTokens += predictedTokens;
    cached.actualTokens += cachedTokens;
    station.prediction.report({ predictedTokens, cachedTokens, promptTokens });
  }
}

/** What a worker is sent of a request, but the signal. */
export function targetOf(
  { settings }: FleetWorker,
  { method, path, query, headers, bytes }: GatewayRequest,
  { forwardAffinityHeaders }: Pick<RouterSettings, "forwardAffinityHeaders">,
): Omit<UpstreamRequest, "signal"> {
  const sent = forwardAffinityHeaders ? headers.copy() : withoutAffinityHeaders(headers);
  if (settings.headers !== undefined) {
    for (const name of [...CREDENTIALS, "cookie"]) sent.delete(name);
    for (const [name, value] of settings.headers) sent.set(name, value);
  }
  return { method, url: `${settings.url}${path}${query}`, headers: sent, bytes };
}

// What the runtime says of a failed connection may name addresses: the client learns its code alone.
function unreachable(workerId: string, cause: unknown): UpstreamError {
  const code = (cause as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  const why = typeof code === "string" && /^[A-Z_0-9]{1,40}$/.test(code) ? `: ${code}` : "";
  const message = `Expected an answer of worker "${workerId}", but none came${why}.`;
  return new UpstreamError("KVROUTE_UPSTREAM_UNREACHABLE", message, { cause });
}

/** An answer that comes when its call has been cut is not read by anybody. */
function dropLate({ body }: Answer): void {
  body?.cancel().catch(nothing);
}

function nothing(): void {}
