import { KvrouteError, UpstreamError } from "../errors.js";
import type { Booking } from "./booking.js";
import { Call } from "./call.js";
import { CallBody } from "./call-body.js";
import type { FleetWorker } from "./fleet.js";
import type { RouterSettings } from "./options.js";
import { idOf, type Prepared } from "./prepare.js";
import { CREDENTIALS, withoutAffinityHeaders } from "./session.js";
import { type AnswerReader, isEventStream, readerOf } from "./stream.js";
import { BYTES_PER_TOKEN, type TokenRates } from "./token-rates.js";
import type { Answer, GatewayRequest, Outcome } from "./types.js";
import type { UpstreamRequest } from "./upstream.js";

/** Blocks of output that are booked for one chunk at most: whatever an engine counts, a chunk costs a bounded time. */
const OUTPUT_BLOCKS_PER_CHUNK = 64;

/** What an attempt is made with. */
export interface AttemptParts {
  readonly settings: RouterSettings;
  readonly rates: TokenRates;
  readonly booking: Booking;
  readonly worker: FleetWorker;
  readonly prepared: Prepared;
  /** Is told of an answer that the worker keeps under an id. */
  readonly onStored: (id: string) => void;
  readonly onBegun: (call: Call) => void;
  readonly onSettled: (call: Call, outcome: Outcome) => void;
  readonly onCancelFailed: () => void;
}

/** Sends a request to the worker on which it is booked, and ends the booking with it. */
export class Attempt {
  readonly #parts: AttemptParts;
  readonly #call: Call;
  #reader: AnswerReader | undefined;
  #hasPrefilled = false;
  #outputBlocks = 0;

  /** Begins: from here on the call holds the booking, and settles it however it ends. */
  constructor(parts: AttemptParts) {
    this.#parts = parts;
    const { settings, booking, worker, prepared, onBegun } = parts;
    worker.begin();
    this.#call = new Call({
      clock: settings.clock,
      stallTimeoutMs: settings.stallTimeoutMs,
      caller: prepared.request.signal,
      workerId: worker.settings.id,
      onSettled: (outcome) => this.#settled(outcome),
      onAlive: () => booking.touch(),
    });
    onBegun(this.#call);
    prepared.request.waitUntil?.(this.#call.settled);
    this.#call.begin();
  }

  /**
   * Gives the worker's answer.
   *
   * @throws {UpstreamError} `KVROUTE_UPSTREAM_UNREACHABLE`, `KVROUTE_UPSTREAM_BROKEN`, `KVROUTE_UPSTREAM_STALLED` if none
   *   came; the reason of the caller's signal where that ended it
   */
  async send(): Promise<Answer> {
    const { settings, worker, prepared } = this.#parts;
    const call = this.#call;
    try {
      const request = { ...targetOf(worker, prepared.request, settings), signal: call.signal };
      const sent = settings.upstream.send(request);
      sent.then((answer) => this.#dropLate(answer), nothing);
      return await this.#passOn(await call.wait(sent));
    } catch (error) {
      call.settle("failed");
      call.close();
      if (call.isAbandoned || error instanceof KvrouteError) throw error;
      throw unreachable(worker.settings.id, error);
    }
  }

  async #passOn({ status, statusText, headers, body }: Answer): Promise<Answer> {
    const { worker, prepared, onCancelFailed } = this.#parts;
    const call = this.#call;
    call.progress();
    const isError = status >= 400;
    const isStream = isEventStream(headers);
    if (!isStream && !isError) this.#endPrefill();
    if (body === undefined) {
      call.settle(isError ? "rejected" : "completed");
      call.close();
      return { status, statusText, headers };
    }
    const reader = readerOf(prepared.dialect, status, headers);
    this.#reader = reader;
    const workerId = worker.settings.id;
    const onRead = () => this.#noteRead(isError);
    const passed = new CallBody({ source: body, reader, call, workerId, isError, onRead, onCancelFailed });
    // Where no stream has begun, an answer that breaks before its first byte can still be an error with a status.
    if (isStream) headers.delete("content-length");
    else await passed.begin();
    return { status, statusText, headers, body: passed };
  }

  /** An answer that comes when its call has been cut is not read by anybody. */
  #dropLate({ body }: Answer): void {
    if (this.#call.signal.aborted && this.#reader === undefined) body?.cancel(this.#call.signal.reason).catch(nothing);
  }

  #noteRead(isError: boolean): void {
    if (isError) return; // it has computed nothing
    this.#endPrefill();
    const { rates, prepared, settings, booking } = this.#parts;
    const outputBytes = (this.#reader?.outputTokens ?? 0) * rates.get(prepared.model);
    const most = this.#outputBlocks + OUTPUT_BLOCKS_PER_CHUNK;
    const outputBlocks = Math.min(Math.floor(outputBytes / settings.blockBytes), most);
    for (; this.#outputBlocks < outputBlocks; this.#outputBlocks++) booking.outputBlock();
  }

  #endPrefill(): void {
    if (this.#hasPrefilled) return;
    this.#hasPrefilled = true;
    this.#parts.booking.prefillComplete();
  }

  #settled(outcome: Outcome): void {
    const { booking, worker, onSettled } = this.#parts;
    try {
      this.#learn();
    } finally {
      booking.free();
      worker.end(outcome);
      onSettled(this.#call, outcome);
    }
  }

  /** Takes from the answer where it is kept, how long the tokens of its model are, and how much of the prompt was cached. */
  #learn(): void {
    const { rates, prepared, booking, onStored } = this.#parts;
    const storedId = idOf(this.#reader?.responseId);
    if (storedId !== undefined) onStored(storedId);
    const usage = this.#reader?.usage;
    if (usage === undefined) return;
    rates.learn(prepared.model, prepared.promptBytes, usage);
    if (usage.cachedTokens === undefined) return;
    // Workers are compared in tokens of one size, whatever the model makes of them.
    const cachedBytes = Math.min(usage.cachedTokens * rates.get(prepared.model), prepared.promptBytes);
    booking.reportCachedTokens(Math.round(cachedBytes / BYTES_PER_TOKEN));
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

function nothing(): void {}
