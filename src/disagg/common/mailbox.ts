import type { Clock } from "../../clock.js";
import { Deadline } from "./deadline.js";

interface Kept<T> {
  readonly item: T;
  untilMs: number;
}

/** Keeps what has come of requests that cannot begin yet: bounded in number and in age, the oldest first to go. */
export class Mailbox<T> {
  readonly #clock: Clock;
  readonly #maxItems: number;
  readonly #ttlMs: number;
  readonly #onExpired: (key: string, item: T) => void;
  readonly #deadline: Deadline;
  /** In the order in which they expire. */
  readonly #items = new Map<string, Kept<T>>();

  constructor(clock: Clock, maxItems: number, ttlMs: number, onExpired: (key: string, item: T) => void) {
    this.#clock = clock;
    this.#maxItems = maxItems;
    this.#ttlMs = ttlMs;
    this.#onExpired = onExpired;
    this.#deadline = new Deadline(clock, () => this.#expire());
  }

  get size(): number {
    return this.#items.size;
  }

  get(key: string): T | undefined {
    return this.#items.get(key)?.item;
  }

  /** Keeps an item under a key that is not in use; `false` if there is no room. */
  add(key: string, item: T): boolean {
    if (this.#items.size >= this.#maxItems) return false;
    this.#items.set(key, { item, untilMs: this.#clock.now() + this.#ttlMs });
    if (this.#items.size === 1) this.#watch();
    return true;
  }

  /** Lets the age of an item start anew. */
  renew(key: string): void {
    const kept = this.#items.get(key);
    if (kept === undefined) return;
    this.#items.delete(key);
    kept.untilMs = this.#clock.now() + this.#ttlMs;
    this.#items.set(key, kept);
  }

  /** Takes an item out. */
  take(key: string): T | undefined {
    const kept = this.#items.get(key);
    this.#items.delete(key);
    if (this.#items.size === 0) this.#deadline.clear();
    return kept?.item;
  }

  entries(): [string, T][] {
    return Array.from(this.#items, ([key, kept]) => [key, kept.item]);
  }

  #watch(): void {
    const oldest = this.#items.values().next();
    if (!oldest.done) this.#deadline.set(oldest.value.untilMs);
  }

  #expire(): void {
    const nowMs = this.#clock.now();
    for (const [key, { item, untilMs }] of this.#items) {
      if (untilMs > nowMs) break;
      this.#items.delete(key);
      this.#onExpired(key, item);
    }
    this.#watch();
  }
}
