import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";

/** Listeners that a signal may have before Node warns: a few for each request that was sent ahead. */
const LISTENERS_MAX = 128;

/** A connection of a client, and the requests on it. All of them are given up when it closes. */
export class Connection {
  readonly socket: Socket;
  /** Requests that have not been answered. */
  requests = 0;
  /** Goes on with those who wait for the client to read. */
  readonly waiting = new Set<() => void>();
  /** Whether it ends with the requests that it has. */
  isLeaving = false;
  readonly #gone = new AbortController();

  constructor(socket: Socket) {
    this.socket = socket;
    setMaxListeners(LISTENERS_MAX, this.#gone.signal);
    // One signal for all requests of a connection: to make one for each would take longer than to read the request.
    socket.once("close", () => {
      this.#gone.abort();
      for (const goOn of this.waiting) goOn();
    });
  }

  /** Aborts when the client has gone. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  get isGone(): boolean {
    return this.#gone.signal.aborted;
  }

  /** Closes it as soon as its requests have been answered, behind what is on its way to the client. */
  leave(): void {
    this.isLeaving = true;
    if (this.requests === 0) this.socket.destroySoon();
  }
}
