import type { Inbox, Origin } from "../inbox.js";
import type { Limits } from "../limits.js";
import type { MemoryNetworkOptions } from "../memory.js";
import { SendWindow } from "../send-window.js";
import type { Envelope } from "../types.js";

interface UnderWay {
  readonly envelope: Envelope;
  /** Whether its delay has ended. */
  isDue: boolean;
}

/** The way from one rank to another: a window, and what is under way. */
export class MemoryWay implements Origin {
  readonly #window: SendWindow;
  readonly #inbox: Inbox;
  readonly #faults: MemoryNetworkOptions;
  /** In order of sending. */
  readonly #underWay = new Set<UnderWay>();
  #whenEmpty: (() => void)[] = [];

  constructor(inbox: Inbox, limits: Limits, faults: MemoryNetworkOptions) {
    this.#window = new SendWindow(limits);
    this.#inbox = inbox;
    this.#faults = faults;
  }

  /** Sends an envelope; returns a promise if it has to wait. */
  send(envelope: Envelope, signal: AbortSignal | undefined): Promise<void> | undefined {
    return this.#window.pass(envelope.bytes.length, signal, () => this.#depart(envelope));
  }

  taken(envelope: Envelope): void {
    this.#window.leave(1, envelope.bytes.length);
  }

  fail(error: Error): void {
    this.#window.fail(error);
  }

  /** Loses what is under way. */
  drop(): void {
    this.#underWay.clear();
    this.#tellIfEmpty();
  }

  /** Waits until nothing is under way. */
  async whenEmpty(): Promise<void> {
    if (this.#underWay.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  #depart(envelope: Envelope): void {
    const { loses, delay } = this.#faults;
    if (loses?.(envelope)) {
      this.taken(envelope);
      return;
    }
    const delayed = delay?.(envelope);
    const one: UnderWay = { envelope, isDue: delayed === undefined };
    this.#underWay.add(one);
    if (delayed === undefined) this.#arrive(one);
    else
      delayed.then(
        () => this.#arrive(one),
        () => this.#arrive(one),
      );
  }

  /** Delivers what is due: this envelope if it may overtake, all that are first in line if it may not. */
  #arrive(due: UnderWay): void {
    due.isDue = true;
    const candidates = this.#faults.reorders ? [due] : this.#underWay;
    for (const one of candidates) {
      if (!one.isDue) break;
      if (this.#underWay.delete(one)) this.#inbox.put(one.envelope, this);
    }
    this.#tellIfEmpty();
  }

  #tellIfEmpty(): void {
    if (this.#underWay.size > 0) return;
    const told = this.#whenEmpty;
    this.#whenEmpty = [];
    for (const tell of told) tell();
  }
}
