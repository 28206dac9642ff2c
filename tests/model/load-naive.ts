import type { LoadRequest } from "../../src/selection/load.js";

/** One booking, told in full: what has happened to it, and nothing derived. */
export interface NaiveBooking {
  readonly worker: number;
  readonly request: LoadRequest;
  isPrefilling: boolean;
  isOpen: boolean;
  outputBlocks: number;
  /** What its blocks count less, in 1,024ths of a block, as of its last output block with a decay. */
  discount: number;
}

interface Sample {
  readonly tokens: number;
  readonly ms: number;
}

/** Booked load without a single running total: every figure is computed from the history when it is asked for. */
export class NaiveLoad {
  readonly bookings: NaiveBooking[] = [];
  readonly #samples = new Map<number, Sample[]>();
  readonly #gifts: { readonly worker: number; readonly tokens: number; readonly atMs: number }[] = [];
  readonly #headSince = new Map<number, number>();
  #latestMs = 0;

  book(worker: number, request: LoadRequest, nowMs: number): void {
    if (request.trackPrefill) {
      if (this.#queue(worker).length === 0) this.#headSince.set(worker, nowMs);
      this.advance(nowMs);
      this.#gifts.push({ worker, tokens: request.missedTokens, atMs: this.#latestMs });
    }
    const isPrefilling = request.trackPrefill;
    this.bookings.push({ worker, request, isPrefilling, isOpen: true, outputBlocks: 0, discount: 0 });
  }

  advance(nowMs: number): void {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
  }

  endPrefill(booking: NaiveBooking, nowMs: number): void {
    if (!booking.isPrefilling) return;
    const { worker } = booking;
    const since = this.headSince(worker);
    if (nowMs >= since) {
      const sample = { tokens: booking.request.missedTokens, ms: nowMs - since };
      this.#samples.set(worker, [...(this.#samples.get(worker) ?? []), sample]);
    }
    this.#headSince.set(worker, nowMs);
    booking.isPrefilling = false;
  }

  addOutputBlock(booking: NaiveBooking, decay?: number): void {
    if (!booking.isOpen) return;
    booking.outputBlocks++;
    if (decay === undefined) return;
    const others = this.#open(booking.worker).filter((other) => other !== booking);
    const isShared = (hash: bigint) => others.some(({ request }) => request.sequenceHashes.includes(hash));
    const sole = booking.request.sequenceHashes.filter((hash) => !isShared(hash)).length;
    booking.discount = Math.round((sole + booking.outputBlocks) * (1 - decay) * 1024);
  }

  release(booking: NaiveBooking, nowMs: number): void {
    if (booking.isPrefilling && this.#queue(booking.worker)[0] === booking) this.#headSince.set(booking.worker, nowMs);
    booking.isPrefilling = false;
    booking.isOpen = false;
  }

  /** Counts the unfinished prefills that contain a block. */
  waiting(hash: bigint): number {
    return this.bookings.filter((one) => one.isPrefilling && one.request.sequenceHashes.includes(hash)).length;
  }

  get openBookings(): number {
    return this.bookings.filter(({ isOpen }) => isOpen).length;
  }

  get averageMissedTokens(): number {
    const missed = this.bookings.filter((one) => one.request.trackPrefill).map((one) => one.request.missedTokens);
    return missed.reduce((average, tokens) => average + 0.01 * (tokens - average), missed[0] ?? 0);
  }

  /** The figures that are whole numbers or exact fractions. */
  exact(worker: number) {
    const queue = this.#queue(worker);
    const open = this.#open(worker);
    const prompt = new Set(open.flatMap(({ request }) => [...request.sequenceHashes])).size;
    const output = sum(open.map((one) => one.outputBlocks - one.discount / 1024));
    return {
      activeRequests: open.length,
      activeBlocks: prompt + output,
      activePrefills: queue.length,
      activePrefillTokens: sum(queue.map(({ request }) => request.missedTokens)),
      headTokens: queue[0]?.request.missedTokens ?? 0,
      headSinceMs: this.headSince(worker),
      missedBlocks: sum(this.bookings.filter((one) => one.worker === worker).map((one) => one.request.missedBlocks)),
      endedPrefills: this.#samples.get(worker)?.length ?? 0,
    };
  }

  headSince(worker: number): number {
    return this.#headSince.get(worker) ?? 0;
  }

  tokensPerMs(worker: number): number {
    const samples = this.#samples.get(worker) ?? [];
    const faded = (read: (sample: Sample) => number): number =>
      sum(samples.map((sample, at) => read(sample) * 0.98 ** (samples.length - 1 - at)));
    const ms = faded((sample) => sample.ms);
    return ms === 0 ? 0 : faded((sample) => sample.tokens) / ms;
  }

  recentTokens(worker: number): number {
    const mine = this.#gifts.filter((gift) => gift.worker === worker);
    return sum(mine.map(({ tokens, atMs }) => tokens * Math.exp((atMs - this.#latestMs) / 60_000)));
  }

  #open(worker: number): NaiveBooking[] {
    return this.bookings.filter((one) => one.isOpen && one.worker === worker);
  }

  #queue(worker: number): NaiveBooking[] {
    return this.bookings.filter((one) => one.isPrefilling && one.worker === worker);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
