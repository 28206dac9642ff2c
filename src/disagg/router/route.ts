import type { Clock } from "../../clock.js";
import { DisaggError } from "../../errors.js";
import type { Transport } from "../../transport/types.js";
import { Deadline } from "../common/deadline.js";
import type { Limits, ROUTER_LIMITS } from "../common/limits.js";
import { Answer } from "./answer.js";
import { Call } from "./call.js";
import type { Crew, Failed } from "./crew.js";
import type { Outcome, RouterEvent } from "./events.js";
import { failure, isFaultOf, isWorthRetrying } from "./failures.js";

/** A request, as it was when `route()` was called. */
export interface Asked {
  readonly tokens: BigInt64Array;
  readonly maxNewTokens: number;
  readonly session: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** What a route needs of its router. */
export interface Desk {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly limits: Limits<keyof typeof ROUTER_LIMITS>;
  readonly crew: Crew;
  /** Makes room for a route, or says why there is none. */
  admit(route: Route): DisaggError | undefined;
  nextRequestId(): bigint;
  /** From here on messages about the call come to it. */
  open(call: Call): void;
  /** No more messages about the call; its workers are told if `isUnfinished`. */
  close(call: Call, isUnfinished: boolean): void;
  emit(event: RouterEvent): void;
  /** The route is over. */
  left(route: Route, outcome: Outcome): void;
}

/** Which limit bounds what a request waits for. */
type Phase = "prefillTimeoutMs" | "firstTokenTimeoutMs" | "tokenTimeoutMs";

/** One request, from the first token that is asked for to its end. */
export class Route {
  readonly answer = new Answer({ begin: () => this.#begin(), leave: () => this.#finish(LEFT, "cancelled") });
  readonly #desk: Desk;
  readonly #asked: Asked;
  readonly #deadline: Deadline;
  readonly #onAbort = () => this.#finish(this.#asked.signal?.reason, "cancelled");
  #call: Call | undefined;
  #holdsPrefill = false;
  #isOver = false;
  #tokens = 0;
  #startedAtMs = 0;
  #endsAtMs = 0;
  #phase: Phase = "prefillTimeoutMs";

  constructor(desk: Desk, asked: Asked) {
    this.#desk = desk;
    this.#asked = asked;
    this.#deadline = new Deadline(desk.clock, () => this.#late());
  }

  /** Fails the present attempt if it is the turn of a certain worker, or needs it later. */
  lose(rank: number, what: string, cause?: unknown): void {
    const call = this.#call;
    if (call === undefined) return;
    const { prefillRank, decodeRank } = call.terms;
    const role = rank === decodeRank ? "decode" : "prefill";
    if (rank !== decodeRank && (rank !== prefillRank || call.phase !== "prefill")) return;
    call.fail(failure("KVROUTE_DISAGG_WORKER_LOST", { ...call.at, role, rank }, what, cause));
  }

  /** Ends the route, because its router does. */
  stop(reason: unknown): void {
    this.#finish(closedError(reason, this.#tokens), "failed");
  }

  #begin(): void {
    const { signal } = this.#asked;
    this.#startedAtMs = this.#desk.clock.now();
    const refusal = signal?.aborted ? signal.reason : this.#desk.admit(this);
    if (refusal !== undefined) {
      this.answer.fail(refusal, true);
      return;
    }
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#endsAtMs = this.#startedAtMs + this.#desk.limits.requestTimeoutMs;
    void this.#serve();
  }

  async #serve(): Promise<void> {
    try {
      const call = await this.#prefill();
      this.#within("firstTokenTimeoutMs");
      await call.decode();
      this.#finish(undefined, "complete");
    } catch (error) {
      this.#finish(error, "failed");
    }
  }

  /** Has the prompt computed: by one worker, or by another one if the first fails at it. */
  async #prefill(): Promise<Call> {
    let failed: Failed = {};
    for (let attempt = 1; ; attempt++) {
      const call = this.#open(attempt, failed);
      try {
        const kvBytes = await call.prefill(this.#asked.tokens);
        if (this.#isOver) return call; // it was given up while the news came here
        this.#releasePrefill(call);
        this.#desk.emit({ type: "decode", requestId: call.terms.id, kvBytes, elapsedMs: this.#elapsedMs() });
        return call;
      } catch (error) {
        if (this.#isOver) throw error;
        this.#close(call, true);
        const { id, prefillRank, decodeRank } = call.terms;
        failed = isFaultOf(decodeRank, error) ? { decodeRank } : { prefillRank };
        if (attempt > this.#desk.limits.prefillRetries || !isWorthRetrying(error)) throw error;
        if (!this.#desk.crew.canServe(failed)) throw error;
        this.#desk.emit({ type: "retry", requestId: id, prefillRank, error });
      }
    }
  }

  #open(attempt: number, except: Failed): Call {
    const { crew, transport, clock, limits } = this.#desk;
    const ranks = crew.choose(this.#asked.session, clock.now(), except);
    const { maxKvBytes, maxReordered } = limits;
    const id = this.#desk.nextRequestId();
    const { maxNewTokens } = this.#asked;
    const onToken = (token: bigint) => this.#take(token);
    const call = new Call(transport, { id, ...ranks, maxNewTokens, maxKvBytes, maxReordered, onToken });
    this.#call = call;
    this.#holdsPrefill = true;
    this.#desk.open(call);
    this.#within("prefillTimeoutMs");
    this.#desk.emit({ type: "prefill", requestId: id, ...ranks, attempt });
    return call;
  }

  #take(token: bigint): void {
    if (this.#tokens++ === 0) {
      const requestId = this.#call?.terms.id as bigint; // tokens come of a call
      this.#desk.emit({ type: "first-token", requestId, elapsedMs: this.#elapsedMs() });
    }
    this.#within("tokenTimeoutMs");
    this.answer.push(token);
  }

  /** Gives up whatever is held, once: the load, the call, the timer, the listener. */
  #finish(error: unknown, outcome: Outcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline.clear();
    this.#asked.signal?.removeEventListener("abort", this.#onAbort);
    const call = this.#call;
    if (call !== undefined) {
      call.fail(error);
      this.#close(call, outcome !== "complete");
    }
    if (outcome === "complete" && call !== undefined) this.#record(call);
    this.#desk.left(this, outcome);
    if (outcome === "complete") this.answer.end();
    else this.answer.fail(error, outcome === "cancelled");
    const end = { requestId: call?.terms.id, outcome, tokens: this.#tokens, elapsedMs: this.#elapsedMs() };
    this.#desk.emit({ type: "end", ...end, ...(outcome === "complete" ? {} : { error }) });
  }

  #record(call: Call): void {
    const { session } = this.#asked;
    if (session === undefined) return;
    this.#desk.crew.record(session, call.terms.decodeRank, this.#desk.clock.now());
  }

  #close(call: Call, isUnfinished: boolean): void {
    this.#releasePrefill(call);
    this.#desk.crew.releaseDecode(call.terms.decodeRank);
    this.#call = undefined;
    this.#desk.close(call, isUnfinished);
  }

  #releasePrefill(call: Call): void {
    if (!this.#holdsPrefill) return;
    this.#holdsPrefill = false;
    this.#desk.crew.releasePrefill(call.terms.prefillRank);
  }

  /** Gives the phase that begins its time, within that of the whole. */
  #within(phase: Phase): void {
    if (this.#isOver) return; // whoever hears of an event may have ended it
    this.#phase = phase;
    this.#deadline.set(Math.min(this.#desk.clock.now() + this.#desk.limits[phase], this.#endsAtMs));
  }

  #late(): void {
    const call = this.#call;
    if (call === undefined) return;
    const isWhole = this.#desk.clock.now() >= this.#endsAtMs;
    const name = isWhole ? "requestTimeoutMs" : this.#phase;
    const what = `did not within ${name}, ${this.#desk.limits[name]} ms`;
    const error = failure("KVROUTE_DISAGG_TIMEOUT", call.at, what);
    if (isWhole) {
      this.#finish(error, "failed");
      return;
    }
    this.#deadline.set(this.#endsAtMs); // a transport that does not give a send up cannot keep the request from ending
    call.fail(error);
  }

  #elapsedMs(): number {
    return this.#desk.clock.now() - this.#startedAtMs;
  }
}

/** What the `end` event says when a loop was left. */
const LEFT = new Error("The loop over the answer was left.");

export function closedError(reason: unknown, tokens: number): DisaggError {
  const why = reason instanceof Error ? `: ${reason.message}` : ".";
  return new DisaggError(
    "KVROUTE_DISAGG_CLOSED",
    `Expected an open router, but it is closed, after ${tokens} tokens${why}`,
    {
      cause: reason,
      tokens,
    },
  );
}
