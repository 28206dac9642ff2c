import { expect } from "vitest";
import { type BlockBook, BookedLoad, type LoadBooking, type LoadRequest } from "../../src/selection/load.js";
import { NaiveLoad } from "./load-naive.js";

/** What may happen to booked load. `booking` counts from the first that was ever booked; one that is not there is passed over. */
export type Step =
  | { readonly verb: "book"; readonly worker: number; readonly request: LoadRequest }
  | { readonly verb: "endPrefill" | "release"; readonly booking: number }
  | { readonly verb: "addOutputBlock"; readonly booking: number; readonly decay: number | undefined }
  | { readonly verb: "advance"; readonly ms: number };

/** A table of blocks, and how many unfinished prefills contain a block of it. */
export interface BookUnderTest extends BlockBook {
  waiting(hash: bigint): number;
}

/** Plays steps on booked load and on the naive one and compares all figures after each. */
export class LoadStage {
  readonly #load: BookedLoad;
  readonly #naive = new NaiveLoad();
  readonly #workers;
  readonly #bookings: LoadBooking[] = [];
  readonly #hashes = new Set<bigint>();
  #nowMs = 1_000;

  constructor(
    readonly book: BookUnderTest,
    workers: number,
  ) {
    this.#load = new BookedLoad(book);
    this.#workers = Array.from({ length: workers }, (_, at) => this.#load.open({ workerId: at >> 1, dpRank: at & 1 }));
  }

  play(steps: readonly Step[]): void {
    for (const step of steps) {
      this.#step(step);
      this.#compare();
    }
  }

  /** Releases what is left, in an order of its own, and looks whether anything remains. */
  finish(order: "first" | "last"): void {
    const left = this.#bookings.map((_, at) => at);
    for (const booking of order === "first" ? left : left.reverse()) this.#step({ verb: "release", booking });
    this.#compare();
    for (const one of this.#workers) {
      expect([one.activeRequests, one.activePrefills, one.activePrefillTokens, one.headTokens]).toEqual([0, 0, 0, 0]);
      expect([one.activeBlocks, one.promptBlocks, one.outputParts]).toEqual([0, 0, 0]);
    }
    expect(this.#load.bookings).toBe(0);
    for (const hash of this.#hashes) expect(this.book.waiting(hash)).toBe(0);
  }

  #step(step: Step): void {
    if (step.verb === "advance") {
      this.#nowMs += step.ms;
      this.#load.advance(this.#nowMs);
      this.#naive.advance(this.#nowMs);
    } else if (step.verb === "book") {
      const load = this.#workers[step.worker];
      if (load === undefined) return;
      for (const hash of step.request.sequenceHashes) this.#hashes.add(hash);
      this.#bookings.push(this.#load.book(load, step.request, this.#nowMs));
      this.#naive.book(step.worker, step.request, this.#nowMs);
    } else {
      this.#change(step);
    }
  }

  #change(step: Exclude<Step, { verb: "advance" | "book" }>): void {
    const booking = this.#bookings[step.booking];
    const naive = this.#naive.bookings[step.booking];
    if (booking === undefined || naive === undefined) return;
    if (step.verb === "addOutputBlock") {
      this.#load.addOutputBlock(booking, step.decay);
      this.#naive.addOutputBlock(naive, step.decay);
    } else {
      this.#load[step.verb](booking, this.#nowMs);
      this.#naive[step.verb](naive, this.#nowMs);
    }
  }

  #compare(): void {
    for (const [at, worker] of this.#workers.entries()) {
      const expected = this.#naive.exact(at);
      for (const name of Object.keys(expected) as (keyof typeof expected)[]) same(name, worker[name], expected[name]);
      if (worker.activeBlocks < 0) expect(worker.activeBlocks).toBeGreaterThanOrEqual(0);
      near("tokensPerMs", worker.tokensPerMs, this.#naive.tokensPerMs(at));
      near("recentTokens", worker.recentTokens, this.#naive.recentTokens(at));
    }
    same("bookings", this.#load.bookings, this.#naive.openBookings);
    near("averageMissedTokens", this.#load.averageMissedTokens, this.#naive.averageMissedTokens);
    for (const hash of this.#hashes) same(`waiting for ${hash}`, this.book.waiting(hash), this.#naive.waiting(hash));
  }
}

// Called so often that an `expect` for each would be most of the time.
function same(name: string, actual: number, expected: number): void {
  if (actual !== expected) expect({ [name]: actual }).toEqual({ [name]: expected });
}

/** The same but for rounding: the naive one adds in another order. */
function near(name: string, actual: number, expected: number): void {
  if (!(Math.abs(actual - expected) <= 1e-9 * Math.abs(expected))) same(name, actual, expected);
}
