import type { Socket } from "node:net";
import { Stop, type StopSignal } from "../../gateway/stop.js";

/** A connection of a client, and the requests on it. All of them are given up when it closes. */
export class Connection {
  readonly socket: Socket;
  /** Requests that have not been answered. */
  requests = 0;
  /** Goes on with those who wait for the client to read. */
  readonly waiting = new Set<() => void>();
  /** Whether it ends with the requests that it has. */
  isLeaving = false;
  readonly #gone = new Stop();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.once("close", () => {
      this.#gone.abort(new DOMException("The client has gone.", "AbortError"));
      for (const goOn of this.waiting) goOn();
    });
  }

  /** Aborts when the client has gone. */
  get signal(): StopSignal {
    return this.#gone;
  }

  get isGone(): boolean {
    return this.#gone.aborted;
  }

  /** Closes it as soon as its requests have been answered, behind what is on its way to the client. */
  leave(): void {
    this.isLeaving = true;
    if (this.requests === 0) this.socket.destroySoon();
  }
}
