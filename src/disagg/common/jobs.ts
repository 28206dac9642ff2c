import type { Clock } from "../../clock.js";
import { Deadline } from "./deadline.js";
import { GivenUp } from "./given-up.js";

/** A request that a worker computes, or will. */
export class Job {
  readonly key: string;
  readonly router: number;
  readonly requestId: bigint;
  /** Bytes that are held for it. */
  heldBytes: number;
  /** Messages to the router that were sent. */
  sent = 0;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #deadline: Deadline;
  /** What it means if the deadline passes. */
  #late = "";

  constructor(clock: Clock, key: string, router: number, requestId: bigint, heldBytes: number) {
    this.key = key;
    this.router = router;
    this.requestId = requestId;
    this.heldBytes = heldBytes;
    this.#clock = clock;
    this.#deadline = new Deadline(clock, () => this.stop(new GivenUp("peerLost", this.#late)));
  }

  /** Aborted when the job is given up. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  stop(reason: GivenUp): void {
    this.#stop.abort(reason);
  }

  /** Waits for something that has to come in time; if it does not, the job is given up, for the reason `late`. */
  async within<T>(limitMs: number, late: string, promise: Promise<T>): Promise<T> {
    this.#late = late;
    this.#deadline.set(this.#clock.now() + limitMs);
    try {
      return await promise;
    } finally {
      this.#deadline.rest();
    }
  }

  /** Stops the timer. */
  end(): void {
    this.#deadline.clear();
  }
}

/** Runs jobs, so many at a time; the others wait in order, so many at most. */
export class Jobs<J extends Job> {
  readonly #concurrency: number;
  readonly #maxWaiting: number;
  readonly #work: (job: J) => Promise<void>;
  readonly #onLeft: (job: J) => void;
  /** Those that were not given up. */
  readonly #live = new Map<string, J>();
  readonly #running = new Set<J>();
  readonly #waiting = new Map<string, J>();

  /**
   * @param work does a job; it never fails
   * @param onLeft is called once for each job that was added, when it is done or given up while it waited
   */
  constructor(concurrency: number, maxWaiting: number, work: (job: J) => Promise<void>, onLeft: (job: J) => void) {
    this.#concurrency = concurrency;
    this.#maxWaiting = maxWaiting;
    this.#work = work;
    this.#onLeft = onLeft;
  }

  /** Jobs whose function has begun and not returned. One that is given up counts until its function has noticed. */
  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether a job can be added: there is a place, or not too many wait for one. */
  get hasRoom(): boolean {
    return this.#hasPlace || this.#waiting.size < this.#maxWaiting;
  }

  get #hasPlace(): boolean {
    return this.#running.size < this.#concurrency;
  }

  /** Adds a job under a key that is not in use, and begins it if there is a place. There must be room. */
  add(job: J): void {
    this.#live.set(job.key, job);
    if (this.#hasPlace) this.#begin(job);
    else this.#waiting.set(job.key, job);
  }

  /** The job under a key. One that was given up is under none: a router that comes back may use its key again. */
  get(key: string): J | undefined {
    return this.#live.get(key);
  }

  all(): J[] {
    return [...this.#live.values()];
  }

  /** Gives a job up. One that waits leaves at once; for one that runs, `false`: it leaves when its function returns. */
  giveUp(job: J, reason: GivenUp): boolean {
    job.stop(reason);
    this.#live.delete(job.key);
    if (!this.#waiting.delete(job.key)) return false;
    this.#leave(job);
    return true;
  }

  #begin(job: J): void {
    this.#running.add(job);
    void this.#work(job).finally(() => {
      this.#leave(job);
      this.#beginNext();
    });
  }

  #leave(job: J): void {
    this.#running.delete(job);
    if (this.#live.get(job.key) === job) this.#live.delete(job.key);
    job.end();
    this.#onLeft(job);
  }

  #beginNext(): void {
    for (const job of this.#waiting.values()) {
      if (!this.#hasPlace) return;
      this.#waiting.delete(job.key);
      this.#begin(job);
    }
  }
}
