import type { Clock } from "../../clock.js";
import type { Envelope, Transport } from "../../transport/types.js";
import { decodeCancel, encodeError, TAGS } from "../protocol.js";
import { Budget } from "./budget.js";
import { asGivenUp, GivenUp } from "./given-up.js";
import { type Job, Jobs } from "./jobs.js";
import type { Limits } from "./limits.js";
import { Mailbox } from "./mailbox.js";
import { Outbox } from "./outbox.js";
import { Remembered } from "./remembered.js";
import { Station } from "./station.js";

/** What a worker has done, and what it holds at present. */
export interface WorkerStats {
  /** Requests whose function has begun and not returned. */
  readonly running: number;
  /** Requests that wait for a place. */
  readonly waiting: number;
  /** Requests that have arrived in part: half a prompt, or a KV cache that nobody has claimed. */
  readonly pending: number;
  /** Bytes of prompts or KV caches that are held. */
  readonly heldBytes: number;
  readonly complete: number;
  readonly cancelled: number;
  readonly failed: number;
  /** Requests that were turned away before their function began. */
  readonly refused: number;
  /** Requests that were dropped because the rest of them, or their claim, did not come in time. */
  readonly expired: number;
  /** Messages of requests that are over or were never begun, or from ranks that have no say in them. */
  readonly strays: number;
  /** Messages that nobody waits for, such as an Error, on their way. */
  readonly notices: number;
  readonly droppedNotices: number;
}

/** A request that has arrived in part. */
export interface Pending {
  readonly router: number;
  readonly requestId: bigint;
  heldBytes: number;
}

type Names =
  | "maxNotices"
  | "noticeTimeoutMs"
  | "closeTimeoutMs"
  | "maxWaiting"
  | "maxPending"
  | "maxRemembered"
  | "maxHeldBytes"
  | "concurrency"
  | "sendTimeoutMs";

/** What a kind of worker adds to what all do. */
export interface Trade<J extends Job> {
  /** How long a request that has arrived in part is kept. */
  readonly pendingMs: number;
  /** Takes a message that is no Cancel, of a request that was not given up. */
  take(envelope: Envelope, key: string): void;
  /** Does a job; gives back whether it was done to the end. */
  work(job: J): Promise<boolean>;
  /** A rank is gone that is not the router of what is given up. */
  lost(rank: number): void;
}

/** What prefill and decode workers have in common: requests that arrive in part, wait, run, and are given up. */
export class Workshop<J extends Job, P extends Pending> {
  readonly station: Station;
  readonly jobs: Jobs<J>;
  readonly pending: Mailbox<P>;
  readonly held: Budget;
  readonly counts = { complete: 0, cancelled: 0, failed: 0, refused: 0, expired: 0, strays: 0 };
  readonly #transport: Transport;
  readonly #limits: Limits<Names>;
  readonly #trade: Trade<J>;
  readonly #outbox: Outbox;
  readonly #over: Remembered;

  constructor(transport: Transport, clock: Clock, limits: Limits<Names>, trade: Trade<J>) {
    this.#transport = transport;
    this.#limits = limits;
    this.#trade = trade;
    this.#outbox = new Outbox(transport, clock, limits);
    this.#over = new Remembered(limits.maxRemembered);
    this.held = new Budget(limits.maxHeldBytes);
    this.pending = new Mailbox(clock, limits.maxPending, trade.pendingMs, (key, item) => this.#expired(key, item));
    this.jobs = new Jobs<J>(
      limits.concurrency,
      limits.maxWaiting,
      (job) => this.#run(job),
      (job) => this.#left(job),
    );
    const owner = {
      take: (envelope: Envelope) => this.#take(envelope),
      lost: (rank: number) => this.#lost(rank),
      stop: () => this.#stop(),
      isIdle: () => this.jobs.running + this.jobs.waiting + this.pending.size === 0,
    };
    this.station = new Station(transport, clock, owner, limits.closeTimeoutMs);
  }

  stats(): WorkerStats {
    return {
      running: this.jobs.running,
      waiting: this.jobs.waiting,
      pending: this.pending.size,
      heldBytes: this.held.lent,
      ...this.counts,
      notices: this.#outbox.underWay,
      droppedNotices: this.#outbox.dropped,
    };
  }

  /** Sends a message of a job, and waits for room. */
  async send(job: Job, destination: number, tag: number, sequence: number, bytes: Envelope["bytes"]): Promise<void> {
    const { router, requestId, signal } = job;
    const limitMs = this.#limits.sendTimeoutMs;
    const sending = this.#transport.send({ destination, tag, router, requestId, sequence, bytes }, { signal });
    await job.within(limitMs, `Expected rank ${destination} to take a message within ${limitMs} ms.`, sending);
  }

  /** Sends the next message of a job to its router. */
  async answer(job: Job, tag: number, bytes: Envelope["bytes"]): Promise<void> {
    await this.send(job, job.router, tag, job.sent, bytes);
    job.sent++;
  }

  /** Sends a message that nobody waits for. */
  post(envelope: Omit<Envelope, "source">): void {
    this.#outbox.post(envelope);
  }

  /** Makes a job of what has arrived: what was held for that is the job's from here on. */
  begin(job: J): void {
    if (!this.jobs.hasRoom) throw new GivenUp("busy", `Expected at most ${this.#limits.maxWaiting} requests to wait.`);
    this.pending.take(job.key);
    this.jobs.add(job);
  }

  /** Turns a request away: what has come of it is dropped, nothing more is taken, and `to` is told. */
  refuse(key: string, envelope: Envelope, to: number, reason: GivenUp): void {
    this.drop(key);
    this.#over.add(key, to === envelope.router);
    this.counts.refused++;
    this.#tell(to, envelope, 0, reason);
    this.station.settle();
  }

  /** Takes a request out of those that have arrived in part. */
  drop(key: string): P | undefined {
    const item = this.pending.take(key);
    if (item !== undefined) this.held.give(item.heldBytes);
    return item;
  }

  #take(envelope: Envelope): void {
    const key = keyOf(envelope);
    if (envelope.tag === TAGS.cancel) this.#cancel(envelope, key);
    else if (this.#over.has(key)) this.#takeLate(envelope, key);
    else this.#trade.take(envelope, key);
  }

  /** Takes what still comes of a request that is over. A router that does not know is told, once. */
  #takeLate(envelope: Envelope, key: string): void {
    const { source, router } = envelope;
    this.counts.strays++;
    if (source !== router || this.#over.isKnown(key)) return;
    this.#over.add(key, true);
    this.#tell(router, envelope, 0, new GivenUp("kvMissing", "What had come of the request was dropped by then."));
  }

  #cancel(envelope: Envelope, key: string): void {
    if (envelope.source !== envelope.router || !isCancel(envelope)) {
      this.counts.strays++;
      return;
    }
    this.#over.add(key, true);
    this.#forget(key, new GivenUp("cancelled", "The router has cancelled the request."));
  }

  /** Gives up whatever there is of a request. */
  #forget(key: string, reason: GivenUp): void {
    if (this.drop(key) !== undefined) this.counts.cancelled++;
    const job = this.jobs.get(key);
    if (job !== undefined && this.jobs.giveUp(job, reason)) this.counts.cancelled++;
    this.station.settle();
  }

  #lost(rank: number): void {
    const reason = new GivenUp("cancelled", `Router ${rank} is gone.`);
    for (const [key, { router }] of this.pending.entries()) if (router === rank) this.#forget(key, reason);
    for (const { key, router } of this.jobs.all()) if (router === rank) this.#forget(key, reason);
    this.#over.forget((key) => key.startsWith(`${rank}:`)); // a router that comes back may count from 1 again
    this.#trade.lost(rank);
  }

  #stop(): void {
    const reason = new GivenUp("closing", "The worker has stopped.");
    for (const [key, item] of this.pending.entries()) {
      this.drop(key);
      this.counts.failed++;
      this.#tell(item.router, item, 0, reason);
    }
    for (const job of this.jobs.all()) {
      if (!this.jobs.giveUp(job, reason)) continue;
      this.counts.failed++;
      this.#tell(job.router, job, 0, reason);
    }
  }

  #expired(key: string, item: P): void {
    this.held.give(item.heldBytes);
    this.#over.add(key, false);
    this.counts.expired++;
    this.station.settle();
  }

  async #run(job: J): Promise<void> {
    try {
      if (await this.#trade.work(job)) this.counts.complete++;
      else this.counts.failed++;
    } catch (error) {
      const reason = asGivenUp(job.signal.aborted ? job.signal.reason : error);
      if (reason.isCancelled) this.counts.cancelled++;
      else {
        this.counts.failed++;
        this.#tell(job.router, job, job.sent, reason);
      }
    }
  }

  #left(job: J): void {
    this.held.give(job.heldBytes);
    this.station.settle();
  }

  #tell(destination: number, about: { router: number; requestId: bigint }, sequence: number, reason: GivenUp): void {
    const { router, requestId } = about;
    const bytes = encodeError({ requestId, code: reason.code, text: reason.message });
    this.post({ destination, tag: TAGS.error, router, requestId, sequence, bytes });
  }
}

function keyOf({ router, requestId }: Envelope): string {
  return `${router}:${requestId}`;
}

function isCancel({ bytes, requestId }: Envelope): boolean {
  try {
    return decodeCancel(bytes).requestId === requestId;
  } catch {
    return false;
  }
}
