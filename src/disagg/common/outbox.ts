import type { Clock } from "../../clock.js";
import type { Envelope, Transport } from "../../transport/types.js";
import { ignore } from "./deferred.js";
import type { Limits } from "./limits.js";

export type Outgoing = Omit<Envelope, "source">;

/** Sends what nobody waits for: bounded in number and in time, and its failures are nobody's. */
export class Outbox {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #limits: Limits<"maxNotices" | "noticeTimeoutMs">;
  #underWay = 0;
  #dropped = 0;

  constructor(transport: Transport, clock: Clock, limits: Limits<"maxNotices" | "noticeTimeoutMs">) {
    this.#transport = transport;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Messages that wait for room. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Messages that were not sent, because too many waited. */
  get dropped(): number {
    return this.#dropped;
  }

  post(envelope: Outgoing): void {
    if (this.#underWay >= this.#limits.maxNotices) {
      this.#dropped++;
      return;
    }
    this.#underWay++;
    const stop = new AbortController();
    const timer = this.#clock.setTimeout(() => stop.abort(), this.#limits.noticeTimeoutMs);
    this.#transport
      .send(envelope, { signal: stop.signal })
      .catch(ignore) // whoever it was for finds out by time
      .finally(() => {
        this.#clock.clearTimeout(timer);
        this.#underWay--;
      });
  }
}
