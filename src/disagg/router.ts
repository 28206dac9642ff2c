import type { Clock } from "../clock.js";
import { ArgumentRangeError, ArgumentTypeError, DisaggError } from "../errors.js";
import { systemClock } from "../system.js";
import type { Envelope, Transport } from "../transport/types.js";
import { checkU64, checkWhole } from "./checks.js";
import { ignore } from "./common/deferred.js";
import { type Limits, ROUTER_LIMITS, readLimits } from "./common/limits.js";
import { Outbox } from "./common/outbox.js";
import { type Owner, Station } from "./common/station.js";
import type { DisaggRouterOptions } from "./options.js";
import { checkSession } from "./placement/session-affinity.js";
import { encodeCancel, TAGS } from "./protocol.js";
import type { Call } from "./router/call.js";
import { Crew, type WorkerLoad } from "./router/crew.js";
import type { Outcome, RouterEvent } from "./router/events.js";
import { type Asked, closedError, type Desk, Route } from "./router/route.js";

export interface DisaggRequest {
  /** The prompt. It is copied when `route()` is called. */
  readonly tokens: BigInt64Array;
  /** How many tokens the answer may have. */
  readonly maxNewTokens: number;
  /** Requests of one session go to one decode worker, as long as it is at work. */
  readonly session?: string | undefined;
  /** Cancels the request; the iteration ends with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What a router has done, and what it holds at present. */
export interface RouterStats {
  /** Requests that were begun and are not over. */
  readonly inFlight: number;
  readonly workers: readonly WorkerLoad[];
  readonly sessions: number;
  readonly nextRequestId: bigint;
  readonly complete: number;
  readonly cancelled: number;
  readonly failed: number;
  /** Requests beyond `maxInFlight`, or after `close()`. */
  readonly refused: number;
  readonly retries: number;
  /** Messages of requests that are over or were never begun, or from ranks that have no say in them. */
  readonly strays: number;
  /** Cancel messages that wait for room. */
  readonly notices: number;
  readonly droppedNotices: number;
  /** Calls of `onEvent` that threw. */
  readonly eventErrors: number;
}

/** Sends prompts to prefill workers and streams answers from decode workers: any number of requests at a time. */
export class DisaggRouter {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #limits: Limits<keyof typeof ROUTER_LIMITS>;
  readonly #crew: Crew;
  readonly #outbox: Outbox;
  readonly #station: Station;
  /** What routes see of their router. */
  readonly #desk: Desk;
  readonly #onEvent: ((event: RouterEvent) => void) | undefined;
  readonly #routes = new Set<Route>();
  readonly #calls = new Map<bigint, Call>();
  readonly #outcomes: Record<Outcome, number> = { complete: 0, cancelled: 0, failed: 0 };
  readonly #counts = { refused: 0, retries: 0, strays: 0, eventErrors: 0 };
  #nextRequestId: bigint;
  /** Why nothing arrives any more. */
  #endReason: unknown;

  /**
   * Makes a router. It begins to listen with the first request.
   *
   * @throws {PlacementError} `KVROUTE_DUPLICATE_RANK` if a rank is given twice, also as a worker of both kinds
   * @throws {ArgumentTypeError | ArgumentRangeError} if a limit is no number, or outside its range
   */
  constructor(options: DisaggRouterOptions) {
    this.#limits = readLimits(ROUTER_LIMITS, options);
    this.#nextRequestId = checkU64(options.firstRequestId ?? 1n, "firstRequestId");
    this.#transport = options.transport;
    this.#clock = options.clock ?? systemClock;
    this.#onEvent = options.onEvent;
    this.#crew = new Crew(options);
    this.#outbox = new Outbox(this.#transport, this.#clock, this.#limits);
    this.#station = new Station(this.#transport, this.#clock, this.#owner(), this.#limits.closeTimeoutMs);
    this.#desk = this.#makeDesk();
  }

  /**
   * Gives the answer to a prompt, token by token. Nothing happens before the first one is asked for; leaving the loop
   * cancels what is left. The answer can be read once.
   *
   * Iterating throws `DisaggError`, which says how many tokens had arrived; `PlacementError` `KVROUTE_NO_WORKERS` before
   * anything is sent; and the reason of `signal`.
   *
   * @throws {ArgumentTypeError | ArgumentRangeError} if the request is none, or larger than the router's limits
   */
  route(request: DisaggRequest): AsyncIterableIterator<bigint> {
    return new Route(this.#desk, this.#check(request)).answer;
  }

  /** Gives the whole answer to a prompt. Fails as iterating over `route()` does. */
  async collect(request: DisaggRequest): Promise<bigint[]> {
    const tokens: bigint[] = [];
    for await (const token of this.route(request)) tokens.push(token);
    return tokens;
  }

  /** Adds a prefill worker, or puts one back to work that was drained, removed or lost. */
  addPrefillWorker(rank: number): void {
    this.#crew.add(rank, "prefill");
  }

  /** Adds a decode worker, or puts one back to work that was drained, removed or lost. */
  addDecodeWorker(rank: number): void {
    this.#crew.add(rank, "decode");
  }

  /**
   * Gives a worker nothing new, and waits until what it has is done. `signal` ends the waiting; the worker stays as it is.
   * If it is put back to work meanwhile, the wait goes on until it has nothing to do.
   *
   * @throws {PlacementError} `KVROUTE_UNKNOWN_RANK`
   */
  async drainWorker(rank: number, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    this.#crew.drain(rank);
    if (this.#crew.inFlight(rank) === 0) return;
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        unlisten();
        signal?.removeEventListener("abort", abort);
      };
      const abort = () => {
        leave();
        reject(signal?.reason);
      };
      const unlisten = this.#crew.onRelease(() => {
        if (this.#crew.inFlight(rank) > 0) return;
        leave();
        resolve();
      });
      signal?.addEventListener("abort", abort);
    });
  }

  /** Forgets a worker at once: what it computes is tried elsewhere, what it generates fails. */
  removeWorker(rank: number): void {
    if (!this.#crew.remove(rank)) return;
    for (const route of this.#routes) route.lose(rank, "was removed");
  }

  /** Forgets which worker has served a session. */
  evictSession(session: string): void {
    this.#crew.evict(session);
  }

  /** Refuses new requests, and waits for those in flight as long as `closeTimeoutMs`. The transport stays open. */
  close(): Promise<void> {
    return this.#station.close();
  }

  stats(): RouterStats {
    return {
      inFlight: this.#routes.size,
      workers: this.#crew.loads(),
      sessions: this.#crew.sessions,
      nextRequestId: this.#nextRequestId,
      ...this.#outcomes,
      ...this.#counts,
      notices: this.#outbox.underWay,
      droppedNotices: this.#outbox.dropped,
    };
  }

  #check(request: DisaggRequest): Asked {
    const { tokens, maxNewTokens, session, signal } = request;
    const { maxPromptTokens } = this.#limits;
    if (!(tokens instanceof BigInt64Array))
      throw new ArgumentTypeError(`Expected tokens to be a BigInt64Array, got a value of type ${typeof tokens}.`);
    if (tokens.length > maxPromptTokens)
      throw new ArgumentRangeError(`Expected at most ${maxPromptTokens} prompt tokens, got ${tokens.length}.`);
    checkWhole(maxNewTokens, "maxNewTokens", this.#limits.maxNewTokens);
    if (session !== undefined) checkSession(session);
    return { tokens: tokens.slice(), maxNewTokens, session, signal };
  }

  #makeDesk(): Desk {
    return {
      transport: this.#transport,
      clock: this.#clock,
      limits: this.#limits,
      crew: this.#crew,
      admit: (route) => this.#admit(route),
      nextRequestId: () => this.#takeRequestId(),
      open: (call) => this.#calls.set(call.terms.id, call),
      close: (call, isUnfinished) => this.#close(call, isUnfinished),
      emit: (event) => this.#emit(event),
      left: (route, outcome) => this.#left(route, outcome),
    };
  }

  #owner(): Owner {
    return {
      take: (envelope) => this.#take(envelope),
      lost: (rank, reason) => this.#lost(rank, reason),
      isIdle: () => this.#routes.size === 0,
      stop: (reason) => {
        this.#endReason = reason;
        for (const route of this.#routes) route.stop(reason);
      },
    };
  }

  #take(envelope: Envelope): void {
    const call = envelope.router === this.#transport.rank ? this.#calls.get(envelope.requestId) : undefined;
    if (call === undefined || !call.take(envelope)) this.#counts.strays++;
  }

  #lost(rank: number, reason: Error): void {
    if (!this.#crew.remove(rank)) return;
    for (const route of this.#routes) route.lose(rank, `is gone: ${reason.message}`, reason);
    this.#emit({ type: "worker-lost", rank, reason });
  }

  #admit(route: Route): DisaggError | undefined {
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      this.#counts.refused++;
      this.#emit({ type: "refused", error: refusal });
      return refusal;
    }
    this.#routes.add(route);
    if (this.#station.state === "new") this.#station.run().catch(ignore); // stop() has told everyone why
    return undefined;
  }

  #refusal(): DisaggError | undefined {
    if (!this.#station.isOpen) return closedError(this.#endReason, 0);
    const { maxInFlight } = this.#limits;
    if (this.#routes.size < maxInFlight) return undefined;
    return new DisaggError(
      "KVROUTE_DISAGG_BUSY",
      `Expected fewer than ${maxInFlight} requests in flight, got one more.`,
    );
  }

  /** Ids start over at 2^64, which no router reaches: at a million a second it takes half a million years. */
  #takeRequestId(): bigint {
    const id = this.#nextRequestId;
    this.#nextRequestId = BigInt.asUintN(64, id + 1n);
    return id;
  }

  #close(call: Call, isUnfinished: boolean): void {
    const { id, prefillRank, decodeRank } = call.terms;
    this.#calls.delete(id);
    if (!isUnfinished) return;
    for (const destination of [prefillRank, decodeRank]) {
      const bytes = encodeCancel({ requestId: id });
      this.#outbox.post({
        destination,
        tag: TAGS.cancel,
        router: this.#transport.rank,
        requestId: id,
        sequence: 0,
        bytes,
      });
    }
  }

  #left(route: Route, outcome: Outcome): void {
    this.#routes.delete(route);
    this.#outcomes[outcome]++;
    this.#station.settle();
  }

  #emit(event: RouterEvent): void {
    if (event.type === "retry") this.#counts.retries++;
    if (this.#onEvent === undefined) return;
    try {
      this.#onEvent(event);
    } catch {
      this.#counts.eventErrors++;
    }
  }
}
