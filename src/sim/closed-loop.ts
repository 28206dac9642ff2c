import type { TraceRequest } from "./row.js";

/** Holds the requests of a session back until the one before has been answered. */
export class ClosedLoop {
  /** What waits, by session. A session that is there has a request under way. */
  readonly #sessions = new Map<string, TraceRequest[]>();
  #waiting = 0;

  /** Counts the requests that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Tells whether a request may go ahead. One that may not is kept. */
  enter(session: string, request: TraceRequest): boolean {
    const queue = this.#sessions.get(session);
    if (queue === undefined) {
      this.#sessions.set(session, []);
      return true;
    }
    queue.push(request);
    this.#waiting++;
    return false;
  }

  /** Ends the request of a session that was under way, and gives back the next, which is under way then. */
  leave(session: string): TraceRequest | undefined {
    const next = this.#sessions.get(session)?.shift();
    if (next === undefined) this.#sessions.delete(session);
    else this.#waiting--;
    return next;
  }
}
