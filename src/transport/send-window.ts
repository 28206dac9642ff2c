import { TransportError } from "../errors.js";
import type { Limits } from "./limits.js";

interface Waiting {
  readonly bytes: number;
  /** Sends, and settles the promise of who waits. */
  readonly go: () => void;
  readonly fail: (error: Error) => void;
}

/**
 * Lets envelopes of one way pass while there is room, and others wait for their turn: first come, first sent.
 *
 * There is room while fewer than `windowEnvelopes` are under way, with at most `windowBytes`. An envelope that is larger
 * than the window passes when nothing else is under way.
 */
export class SendWindow {
  #envelopes = 0;
  #bytes = 0;
  #failure: Error | null = null;
  #isPassing = false;
  readonly #waiting = new Set<Waiting>();
  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Envelopes under way, and sends that wait. */
  get counts(): { envelopes: number; bytes: number; waiting: number } {
    return { envelopes: this.#envelopes, bytes: this.#bytes, waiting: this.#waiting.size };
  }

  /**
   * Runs `deliver` at once and returns nothing, or once there is room and returns a promise of it.
   *
   * Room is taken and `deliver` run in one step, so that nothing that was given up afterwards holds room. What `deliver`
   * throws is thrown here, or rejects the promise, and its room is free again.
   */
  pass(bytes: number, signal: AbortSignal | undefined, deliver: () => void): Promise<void> | undefined {
    if (this.#failure !== null) throw this.#failure;
    signal?.throwIfAborted();
    if (this.#waiting.size === 0 && this.#hasRoom(bytes)) {
      this.#enter(bytes, deliver);
      return undefined;
    }
    if (this.#waiting.size >= this.#limits.maxWaiting) {
      throw new TransportError(
        "KVROUTE_TRANSPORT_BUSY",
        `Expected at most ${this.#limits.maxWaiting} sends to wait for a rank, got one more.`,
      );
    }
    return this.#wait(bytes, signal, deliver);
  }

  /** Gives back the room of envelopes that were taken, and lets those pass that have waited for it. */
  leave(envelopes: number, bytes: number): void {
    this.#envelopes -= envelopes;
    this.#bytes -= bytes;
    if (this.#isPassing) return; // what was let pass has left at once: the loop below goes on
    this.#isPassing = true;
    for (const next of this.#waiting) {
      if (!this.#hasRoom(next.bytes)) break;
      this.#waiting.delete(next);
      next.go();
    }
    this.#isPassing = false;
  }

  /** Refuses those who wait and all who come. */
  fail(error: Error): void {
    this.#failure ??= error;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const one of waiting) one.fail(error);
  }

  #hasRoom(bytes: number): boolean {
    if (this.#envelopes >= this.#limits.windowEnvelopes) return false;
    return this.#envelopes === 0 || this.#bytes + bytes <= this.#limits.windowBytes;
  }

  #enter(bytes: number, deliver: () => void): void {
    this.#envelopes++;
    this.#bytes += bytes;
    try {
      deliver();
    } catch (error) {
      this.#envelopes--;
      this.#bytes -= bytes;
      throw error;
    }
  }

  #wait(bytes: number, signal: AbortSignal | undefined, deliver: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = () => signal?.removeEventListener("abort", giveUp);
      const waiting: Waiting = {
        bytes,
        go: () => {
          settle();
          try {
            this.#enter(bytes, deliver);
            resolve();
          } catch (error) {
            reject(error);
          }
        },
        fail: (error) => {
          settle();
          reject(error);
        },
      };
      const giveUp = () => {
        this.#waiting.delete(waiting);
        settle();
        reject(signal?.reason);
        this.leave(0, 0); // the one behind may be small enough for the room that this one waited for
      };
      signal?.addEventListener("abort", giveUp);
      this.#waiting.add(waiting);
    });
  }
}
