import type { WorkerWithDpRank } from "../core/keys.js";
import { ArgumentRangeError } from "../errors.js";
import { LoadBooking, type LoadRequest } from "./load/booking.js";
import { RecentClock } from "./load/recent.js";
import { OUTPUT_PARTS, WorkerLoad } from "./load/worker-load.js";
import { positiveOption } from "./policies/numbers.js";

export { LoadBooking, type LoadRequest, WorkerLoad };

/** What booked load asks of the table of blocks in the core. `BookedBlocks` is one. */
export interface BlockBook {
  book(worker: WorkerWithDpRank, hashes: BigUint64Array): number;
  settle(hashes: BigUint64Array): void;
  unbook(worker: WorkerWithDpRank, hashes: BigUint64Array, waiting: boolean): number;
  sole(worker: WorkerWithDpRank, hashes: BigUint64Array): number;
}

/** After this time work counts 1/e of what it did in `recentTokens`. */
export const RECENT_MEMORY_MS = 60_000;
/** Each request moves the average of missed tokens by this part of the difference. */
const AVERAGE_STEP = 0.01;

/**
 * The load that was booked on the workers of one fleet: what each request keeps in use and has to compute, from its booking
 * until its release. Times are arguments, in milliseconds.
 */
export class BookedLoad {
  readonly #blocks: BlockBook;
  readonly #recentClock: RecentClock;
  #averageMissedTokens = 0;
  #bookings = 0;

  /** @throws {OptionError} `KVROUTE_OPTION` if an option is out of range */
  constructor(blocks: BlockBook, options: { readonly recentMemoryMs?: number | undefined } = {}) {
    this.#blocks = blocks;
    this.#recentClock = new RecentClock(positiveOption("recentMemoryMs", options.recentMemoryMs ?? RECENT_MEMORY_MS));
  }

  /** The moving average of the tokens that booked requests had to have computed; 0 before the first. */
  get averageMissedTokens(): number {
    return this.#averageMissedTokens;
  }

  /** Counts the bookings that have not been released. */
  get bookings(): number {
    return this.#bookings;
  }

  /** Makes the counters of a worker, all zero. Who holds them keeps them: there is no list here to forget them in. */
  open(worker: WorkerWithDpRank): WorkerLoad {
    return new WorkerLoad(worker, this.#recentClock);
  }

  /** Lets time pass for `recentTokens`. */
  advance(nowMs: number): void {
    this.#recentClock.advance(nowMs);
  }

  /**
   * Books a request on a worker, or throws and changes nothing.
   *
   * @throws whatever the table of blocks throws where it is full
   */
  book(load: WorkerLoad, request: LoadRequest, nowMs: number): LoadBooking {
    const { sequenceHashes, missedTokens, missedBlocks, trackPrefill } = request;
    const added = this.#blocks.book(load.worker, sequenceHashes);
    if (!trackPrefill) this.#blocks.settle(sequenceHashes);
    const booking = new LoadBooking(load, request);
    this.#bookings++;
    load.activeRequests++;
    load.promptBlocks += added;
    load.missedBlocks += missedBlocks;
    if (trackPrefill) {
      load.enqueue(booking, nowMs);
      this.#recentClock.advance(nowMs);
      load.addRecent(missedTokens);
      this.#average(missedTokens);
    }
    return booking;
  }

  /** Ends the prefill of a booking. Ending it twice is ending it once. */
  endPrefill(booking: LoadBooking, nowMs: number): void {
    if (!booking.isPrefilling) return;
    booking.isPrefilling = false;
    booking.load.dequeue(booking, nowMs, true);
    this.#blocks.settle(booking.sequenceHashes);
  }

  /**
   * Adds an output block to a booking. One that was released has no more output.
   *
   * @param decay 0 to 1: what each block that nobody shares, output included, counts from now on; by default they stay as
   *   they are
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `decay` lies outside its range
   */
  addOutputBlock(booking: LoadBooking, decay?: number): void {
    if (decay !== undefined && !(decay >= 0 && decay <= 1)) {
      throw new ArgumentRangeError(`Expected decay to be a number from 0 to 1, got ${decay}.`);
    }
    if (booking.hasEnded) return;
    const { load } = booking;
    booking.outputBlocks++;
    load.outputParts += OUTPUT_PARTS;
    if (decay === undefined) return;
    const own = this.#blocks.sole(load.worker, booking.sequenceHashes) + booking.outputBlocks;
    const discount = Math.round(own * (1 - decay) * OUTPUT_PARTS);
    load.outputParts -= discount - booking.discountParts;
    booking.discountParts = discount;
  }

  /** Gives back all that a booking holds. Releasing it twice is releasing it once. */
  release(booking: LoadBooking, nowMs: number): void {
    if (booking.hasEnded) return;
    const { load, sequenceHashes } = booking;
    const waiting = booking.isPrefilling;
    if (waiting) {
      booking.isPrefilling = false;
      load.dequeue(booking, nowMs, false);
    }
    booking.hasEnded = true;
    this.#bookings--;
    load.activeRequests--;
    load.outputParts -= booking.outputBlocks * OUTPUT_PARTS - booking.discountParts;
    load.promptBlocks -= this.#blocks.unbook(load.worker, sequenceHashes, waiting);
  }

  #average(missedTokens: number): void {
    const known = this.#averageMissedTokens;
    this.#averageMissedTokens = known === 0 ? missedTokens : known + AVERAGE_STEP * (missedTokens - known);
  }
}
