import { TransportError } from "../errors.js";
import { Listeners } from "./listeners.js";
import type { Envelope, ReceiveOptions } from "./types.js";

/** The way that an envelope came; it hears when the envelope is taken. */
export interface Origin {
  taken(envelope: Envelope): void;
}

/** What stands in an inbox: an envelope with the way it came, or the news that a rank is lost. */
type Arrival =
  | { readonly envelope: Envelope; readonly origin: Origin }
  | { readonly envelope: null; readonly rank: number; readonly reason: Error };

type Taken = IteratorResult<Envelope, undefined>;

interface Iteration {
  readonly signal: AbortSignal | undefined;
  /** Who waits for an arrival. */
  waiting: { readonly resolve: (taken: Taken) => void; readonly reject: (error: Error) => void } | null;
  readonly onAbort: () => void;
}

const DONE: Taken = { done: true, value: undefined };

/** Arrivals that have been taken are cut off once they are so many and more than half. */
const CUT_AT = 64;

/**
 * What has arrived for a rank and was not taken, in order of arrival.
 *
 * News of a lost rank keeps its place behind what that rank sent before, so that nobody gives up on an answer that is
 * already there. The senders' windows bound the envelopes; of each rank there is at most one piece of news.
 */
export class Inbox {
  readonly losses = new Listeners<[rank: number, reason: Error]>();
  /** What was taken is `null` until it is cut off: it must not hold memory that no window counts any more. */
  #arrivals: (Arrival | null)[] = [];
  #head = 0;
  readonly #news = new Map<number, Arrival>();
  #iteration: Iteration | null = null;
  /** Why nothing comes any more: `null` while something does, an error if the transport broke. */
  #end: { readonly error: Error | null } | null = null;
  readonly #idle: (() => void) | undefined;

  /** @param idle called when a receiver begins to wait */
  constructor(idle?: () => void) {
    this.#idle = idle;
  }

  /** Takes an envelope in. After the end nothing comes in. */
  put(envelope: Envelope, origin: Origin): void {
    if (this.#end !== null) return;
    const waiting = this.#waiter();
    if (waiting === null) {
      this.#arrivals.push({ envelope, origin });
      return;
    }
    origin.taken(envelope);
    waiting.resolve({ done: false, value: envelope });
  }

  /** Tells that a rank is lost, once what it sent before is taken: at once if nothing is left and nobody is at work on it. */
  lose(rank: number, reason: Error): void {
    if (this.#end !== null) return;
    const isAtWork = this.#iteration !== null && this.#iteration.waiting === null;
    if (!isAtWork && this.#head === this.#arrivals.length) {
      this.losses.tell(rank, reason);
      return;
    }
    const stale = this.#news.get(rank);
    if (stale !== undefined) {
      this.#arrivals = this.#arrivals.slice(this.#head).filter((arrival) => arrival !== stale);
      this.#head = 0;
    }
    const news: Arrival = { envelope: null, rank, reason };
    this.#news.set(rank, news);
    this.#arrivals.push(news);
  }

  /** Lets nothing in any more: receivers end after what is there, with the error if there is one. The first end holds. */
  end(error: Error | null): void {
    if (this.#end !== null) return;
    this.#end = { error };
    const waiting = this.#waiter();
    if (waiting === null) return;
    this.#close();
    if (error === null) waiting.resolve(DONE);
    else waiting.reject(error);
  }

  /** Begins to take arrivals when its iterator is asked for. */
  receive(options: ReceiveOptions = {}): AsyncIterable<Envelope> {
    return { [Symbol.asyncIterator]: () => this.#open(options.signal) };
  }

  #open(signal: AbortSignal | undefined): AsyncIterator<Envelope, undefined> {
    if (this.#iteration !== null) {
      throw new TransportError("KVROUTE_TRANSPORT_RECEIVING", "Expected one iteration at a time, got a second one.");
    }
    const iteration: Iteration = { signal, waiting: null, onAbort: () => this.#stop(iteration) };
    this.#iteration = iteration;
    signal?.addEventListener("abort", iteration.onAbort);
    return {
      next: () => this.#next(iteration),
      return: async () => {
        this.#stop(iteration);
        return DONE;
      },
    };
  }

  /** Ends an iteration that is open; who waits gets the end. */
  #stop(iteration: Iteration): void {
    if (this.#iteration !== iteration) return;
    const waiting = this.#waiter();
    this.#close();
    waiting?.resolve(DONE);
  }

  #close(): void {
    const iteration = this.#iteration;
    iteration?.signal?.removeEventListener("abort", iteration.onAbort);
    this.#iteration = null;
  }

  #next(iteration: Iteration): Promise<Taken> {
    if (this.#iteration !== iteration) return Promise.resolve(DONE);
    if (iteration.signal?.aborted) {
      this.#close();
      return Promise.resolve(DONE);
    }
    if (iteration.waiting !== null) {
      const message = "Expected next() to be called after the one before was answered.";
      return Promise.reject(new TransportError("KVROUTE_TRANSPORT_RECEIVING", message));
    }
    const envelope = this.#take();
    if (envelope !== null) return Promise.resolve({ done: false, value: envelope });
    if (this.#iteration !== iteration) return Promise.resolve(DONE); // a listener has ended it
    if (this.#end !== null) return this.#finish(this.#end.error);
    return new Promise((resolve, reject) => {
      iteration.waiting = { resolve, reject };
      this.#idle?.();
    });
  }

  #finish(error: Error | null): Promise<Taken> {
    this.#close();
    return error === null ? Promise.resolve(DONE) : Promise.reject(error);
  }

  /** Takes the next envelope, and tells the news that stand before it. */
  #take(): Envelope | null {
    while (this.#head < this.#arrivals.length) {
      const arrival = this.#arrivals[this.#head] as Arrival;
      this.#arrivals[this.#head++] = null;
      this.#cut();
      if (arrival.envelope !== null) {
        arrival.origin.taken(arrival.envelope);
        return arrival.envelope;
      }
      this.#news.delete(arrival.rank);
      this.losses.tell(arrival.rank, arrival.reason);
    }
    return null;
  }

  #cut(): void {
    if (this.#head < CUT_AT || 2 * this.#head < this.#arrivals.length) return;
    this.#arrivals = this.#arrivals.slice(this.#head);
    this.#head = 0;
  }

  /** Takes the one who waits out of the iteration. */
  #waiter(): Iteration["waiting"] {
    const waiting = this.#iteration?.waiting ?? null;
    if (waiting !== null && this.#iteration !== null) this.#iteration.waiting = null;
    return waiting;
  }
}
