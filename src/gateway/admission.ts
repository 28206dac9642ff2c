import type { Clock } from "../clock.js";
import { QueueError } from "../errors.js";
import { countOption } from "../selection/policies/numbers.js";
import { Entry } from "./admission-entry.js";
import { AdmissionRate } from "./admission-rate.js";
import { Alarm } from "./alarm.js";
import { QUEUED_MAX } from "./options.js";
import type { StopSignal } from "./stop.js";
import { type AdmissionStats, type Ending, noEndings } from "./types.js";

/** What an admission queue is made with. */
export interface AdmissionOptions {
  readonly clock: Clock;
  /** Requests that may wait, 0 to 1,000,000. */
  readonly maxQueued: number;
  /** How long each may wait, in milliseconds. 1 to 2^31 - 1. */
  readonly queueTimeoutMs: number;
  /** Tells when a worker will be free that nobody says so of, `Infinity` where none will. Default: none ever will. */
  readonly nextFreeMs?: (() => number) | undefined;
}

const TIMEOUT_MS_MAX = 2 ** 31 - 1;

const never = () => Number.POSITIVE_INFINITY;

/** Passes in a row by which nobody goes: an attempt that wakes the queue each time and never goes would keep it awake for ever. */
export const IDLE_PASSES_MAX = 8;

/**
 * Holds requests while all workers that could have them are busy. Among those that can go the one that came first goes first:
 * one that still cannot keeps its place, and those behind it may pass. Nobody is overtaken who could go.
 *
 * It knows nothing of workers: whether a request can go, its attempt says, which books the worker in the same step. An
 * attempt may do what frees a worker, and so wake the queue that is calling it.
 */
export class AdmissionQueue {
  readonly #clock: Clock;
  readonly #maxQueued: number;
  readonly #timeoutMs: number;
  readonly #nextFreeMs: () => number;
  readonly #alarm: Alarm;
  readonly #rate = new AdmissionRate();
  /** In the order of arrival, as a Set keeps the order of insertion. */
  readonly #entries = new Set<Entry>();
  /** How many of each group there are. */
  readonly #groups = new Map<unknown, number>();
  /** Groups of which one could not go in the present pass. */
  readonly #stuck = new Set<unknown>();
  readonly #ended = noEndings();
  /** The entry whose attempt is under way. */
  #trying: Entry | undefined;
  #isAwake = false;
  #isWoken = false;
  #closedWith: { readonly error: unknown } | undefined;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option is out of range */
  constructor({ clock, maxQueued, queueTimeoutMs, nextFreeMs = never }: AdmissionOptions) {
    this.#clock = clock;
    this.#nextFreeMs = nextFreeMs;
    this.#alarm = new Alarm(clock, () => this.wake());
    this.#maxQueued = countOption("maxQueued", maxQueued, 0, QUEUED_MAX);
    this.#timeoutMs = countOption("queueTimeoutMs", queueTimeoutMs, 1, TIMEOUT_MS_MAX);
  }

  get stats(): AdmissionStats {
    return { waiting: this.#entries.size, ...this.#ended };
  }

  /**
   * Lets a request go at once if it can, or holds it. Throws, or rejects, with what its attempt throws, with the reason of the
   * signal, and with the error of `close`. Where an attempt has given something, that is what the caller gets, even if the
   * signal aborts meanwhile.
   *
   * @param attempt takes a worker and gives what the caller waits for, or `undefined` where all are busy
   * @param group names requests that can go to the same workers: while one of them cannot go, none behind it is asked.
   *   Default: a group of its own
   * @throws {QueueError} `KVROUTE_GATEWAY_QUEUE_FULL` if `maxQueued` wait already, `KVROUTE_GATEWAY_QUEUE_TIMEOUT` if it has
   *   waited for `queueTimeoutMs`
   */
  enter<T>(attempt: () => T | undefined, signal?: StopSignal, group?: unknown): T | Promise<T> {
    if (this.#closedWith !== undefined) throw this.#closedWith.error;
    signal?.throwIfAborted();
    const entry = new Entry(attempt, signal, group);
    if (this.#entries.size === 0 && !this.#isAwake) this.#goAlone(entry);
    else {
      this.#add(entry);
      this.wake(); // those who stand before it first
    }
    if (entry.ending === undefined && signal?.aborted) this.#end(entry, "cancelled", signal.reason);
    if (entry.ending === undefined && this.#entries.size > this.#maxQueued) this.#end(entry, "refused", this.#full());
    if (entry.ending === undefined) {
      this.#setAlarm();
      return this.#hold(entry) as Promise<T>;
    }
    if (entry.ending === "admittedAtOnce") return entry.outcome as T;
    throw entry.outcome;
  }

  /** Says that a worker may have become free. Each request that waits is asked once at most, in the order of arrival. */
  wake(): void {
    if (this.#entries.size === 0 && !this.#isAwake) return;
    this.#isWoken = true;
    if (this.#isAwake) return; // whoever is awake sees to it
    this.#isAwake = true;
    try {
      let idlePasses = 0;
      while (this.#isWoken && idlePasses < IDLE_PASSES_MAX) {
        this.#isWoken = false;
        idlePasses = this.#pass() ? 0 : idlePasses + 1;
      }
    } finally {
      this.#isAwake = false;
      this.#setAlarm();
    }
  }

  /** Turns all away that wait, and whoever comes later. */
  close(error: unknown): void {
    this.#closedWith ??= { error };
    for (const entry of this.#entries) this.#end(entry, "failed", error);
  }

  #add(entry: Entry): void {
    this.#entries.add(entry);
    this.#groups.set(entry.group, (this.#groups.get(entry.group) ?? 0) + 1);
  }

  /** Lets an entry go before which nobody stands, as most do: it is added only if it cannot. */
  #goAlone(entry: Entry): void {
    this.#isAwake = true;
    this.#isWoken = false;
    this.#try(entry);
    this.#isAwake = false;
    if (entry.ending === undefined) this.#add(entry);
    if (this.#closedWith !== undefined) this.close(this.#closedWith.error); // it was closed meanwhile
    if (this.#isWoken) this.wake();
  }

  /** Asks those who wait, once each. Returns whether any of them went. */
  #pass(): boolean {
    let hasGone = false;
    this.#stuck.clear();
    for (const entry of this.#entries) {
      if (this.#stuck.has(entry.group)) continue;
      if (this.#try(entry)) hasGone = true;
      else if (this.#groups.has(entry.group)) this.#stuck.add(entry.group);
      if (this.#stuck.size === this.#groups.size) break; // nobody is left to ask
    }
    return hasGone;
  }

  /** Returns whether the entry has ended, in whichever way. */
  #try(entry: Entry): boolean {
    this.#trying = entry;
    let given: unknown;
    try {
      given = entry.attempt();
    } catch (error) {
      this.#trying = undefined;
      this.#end(entry, "failed", error);
      return true;
    }
    this.#trying = undefined;
    if (given !== undefined) {
      this.#rate.add(this.#clock.now());
      this.#end(entry, entry.onEnd === undefined ? "admittedAtOnce" : "admittedAfterWaiting", given);
    } else if (entry.ending !== undefined) {
      this.#end(entry, entry.ending, entry.outcome);
    }
    return entry.ending !== undefined;
  }

  /** Ends an entry. One whose attempt is under way ends behind it: what the attempt takes would have no owner. */
  #end(entry: Entry, ending: Ending, outcome: unknown): void {
    entry.end(ending, outcome);
    if (entry === this.#trying) return;
    if (this.#entries.delete(entry)) {
      this.#leaveGroup(entry);
      if (this.#entries.size === 0) this.#setAlarm();
    }
    this.#ended[ending]++;
    entry.onEnd?.();
  }

  /** Sees to it that those who wait are asked when a worker is free by time alone: nobody would wake them then. */
  #setAlarm(): void {
    this.#alarm.set(this.#entries.size === 0 ? Number.POSITIVE_INFINITY : this.#nextFreeMs());
  }

  #leaveGroup({ group }: Entry): void {
    const others = (this.#groups.get(group) as number) - 1;
    if (others > 0) {
      this.#groups.set(group, others);
      return;
    }
    this.#groups.delete(group);
    this.#stuck.delete(group);
  }

  #hold(entry: Entry): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { signal } = entry;
      const timer = this.#clock.setTimeout(() => this.#end(entry, "timedOut", this.#late()), this.#timeoutMs);
      const abort = () => this.#end(entry, "cancelled", signal?.reason);
      signal?.addEventListener("abort", abort);
      entry.onEnd = () => {
        this.#clock.clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        if (entry.ending === "admittedAfterWaiting") resolve(entry.outcome);
        else reject(entry.outcome);
      };
    });
  }

  #full(): QueueError {
    const message = `Expected at most ${this.#maxQueued} requests to wait for a worker (maxQueued), got one more.`;
    return new QueueError("KVROUTE_GATEWAY_QUEUE_FULL", message, this.#retryAfterMs());
  }

  #late(): QueueError {
    const message = `Expected a worker to become free within ${this.#timeoutMs} ms (queueTimeoutMs), but none has.`;
    return new QueueError("KVROUTE_GATEWAY_QUEUE_TIMEOUT", message, this.#retryAfterMs());
  }

  /** All who wait would go first. The one that asks is still among them. */
  #retryAfterMs(): number {
    return this.#rate.waitMs(this.#entries.size, this.#clock.now());
  }
}
