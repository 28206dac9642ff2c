import type { Clock } from "../../clock.js";
import { DisaggError } from "../../errors.js";
import type { Envelope, Transport } from "../../transport/types.js";
import { Deadline } from "./deadline.js";
import { defer } from "./deferred.js";

/** What stands behind a station: a router or a worker. None of these may throw. */
export interface Owner {
  take(envelope: Envelope): void;
  /** Another rank is gone. */
  lost(rank: number, reason: Error): void;
  /** Nothing will come any more: whatever is under way is given up. */
  stop(reason: unknown): void;
  /** Whether nothing is under way. */
  isIdle(): boolean;
}

/** Stands between a transport and what it serves: hands on what arrives, from `run()` until it is closed or stopped. */
export class Station {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #owner: Owner;
  readonly #closeTimeoutMs: number;
  readonly #end = new AbortController();
  readonly #ended = defer<void>();
  #state: "new" | "running" | "closing" | "ended" = "new";

  constructor(transport: Transport, clock: Clock, owner: Owner, closeTimeoutMs: number) {
    this.#transport = transport;
    this.#clock = clock;
    this.#owner = owner;
    this.#closeTimeoutMs = closeTimeoutMs;
  }

  /** Whether what is new is taken. */
  get isOpen(): boolean {
    return this.#state === "new" || this.#state === "running";
  }

  get state(): "new" | "running" | "closing" | "ended" {
    return this.#state;
  }

  /** Hands on what arrives, until `close()` is through, `signal` is aborted or the transport is closed. Once. */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#state !== "new") {
      throw new DisaggError(
        "KVROUTE_DISAGG_CLOSED",
        `Expected to run what was never run before, but it is ${this.#state}.`,
      );
    }
    this.#state = "running";
    const stop = () => this.#finish(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    const unlisten = this.#transport.onPeerLost((rank, reason) => this.#owner.lost(rank, reason));
    try {
      if (signal?.aborted) return;
      for await (const envelope of this.#transport.receive({ signal: this.#end.signal })) this.#owner.take(envelope);
      this.#finish(new DisaggError("KVROUTE_DISAGG_CLOSED", "Expected an open transport, but it was closed."));
    } catch (error) {
      this.#finish(error);
      throw error;
    } finally {
      this.#finish(signal?.reason);
      signal?.removeEventListener("abort", stop);
      unlisten();
      this.#ended.resolve();
    }
  }

  /** Takes nothing new, waits for what is under way until its time is up, and ends `run()`. */
  async close(): Promise<void> {
    if (this.#state === "new") {
      this.#state = "ended";
      this.#ended.resolve();
    }
    if (this.#state === "running") await this.#drain();
    await this.#ended.promise;
  }

  /** Says that something has ended: a station that is closing looks whether it was the last. */
  settle(): void {
    if (this.#state === "closing" && this.#owner.isIdle()) this.#finish(undefined);
  }

  async #drain(): Promise<void> {
    this.#state = "closing";
    const late = new DisaggError("KVROUTE_DISAGG_CLOSED", "Expected to end before the time to close was up.");
    const deadline = new Deadline(this.#clock, () => this.#finish(late));
    deadline.set(this.#clock.now() + this.#closeTimeoutMs);
    this.settle();
    await this.#ended.promise;
    deadline.clear();
  }

  #finish(reason: unknown): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#owner.stop(reason ?? new DisaggError("KVROUTE_DISAGG_CLOSED", "Expected to be open, but it was closed."));
    this.#end.abort();
  }
}
