import { BookedLoad, type LoadBooking, type WorkerLoad } from "../../src/selection/load.js";
import type { Candidate, Policy } from "../../src/selection/policy.js";
import { Prng } from "../../src/sim/prng.js";
import { MapBlockBook } from "../model/load-map-book.js";

/** A request of the scenario: distinct numbers are distinct blocks. */
export interface Arrival {
  readonly atMs: number;
  readonly blocks: readonly number[];
  readonly promptTokens: number;
  readonly blockTokens: number;
}

/** What became of a run: how long each request waited for its first token, and what each worker did. */
export interface Outcome {
  readonly delaysMs: readonly number[];
  readonly requests: readonly number[];
  readonly missedTokens: readonly number[];
  readonly hitBlocks: readonly number[];
}

interface Running {
  readonly booking: LoadBooking;
  readonly endMs: number;
}

/**
 * A fleet whose workers serve prefills one after the other at a rate each, and keep every block: what a policy alone makes of
 * a scenario. A block counts as held from the moment its request is booked.
 */
class Fleet {
  readonly #book = new MapBlockBook();
  readonly #load = new BookedLoad(this.#book);
  readonly #workers: readonly FleetWorker[];
  readonly #chance = new Prng(1);
  readonly #delaysMs: number[] = [];

  constructor(
    readonly policy: Policy,
    tokensPerMs: readonly number[],
  ) {
    this.#workers = tokensPerMs.map(
      (rate, at) => new FleetWorker(this.#load.open({ workerId: at >> 1, dpRank: at & 1 }), rate),
    );
  }

  run(arrivals: readonly Arrival[]): Outcome {
    for (const arrival of arrivals) this.#serve(arrival);
    return {
      delaysMs: this.#delaysMs.sort((a, b) => a - b),
      requests: this.#workers.map((one) => one.requests),
      missedTokens: this.#workers.map((one) => one.missedTokens),
      hitBlocks: this.#workers.map((one) => one.hitBlocks),
    };
  }

  #serve({ atMs, blocks, promptTokens, blockTokens }: Arrival): void {
    for (const worker of this.#workers) worker.endUntil(atMs, this.#load);
    this.#load.advance(atMs);
    const sequenceHashes = BigUint64Array.from(blocks, BigInt);
    for (const worker of this.#workers) worker.consider(blocks);
    const { index } = this.policy.choose(
      this.#workers,
      { sequenceHashes, promptTokens, blockTokens },
      {
        nowMs: atMs,
        random: () => this.#chance.random(),
        hotBlocks: this.#hotBlocks(sequenceHashes),
        averageMissedTokens: this.#load.averageMissedTokens,
      },
    );
    const worker = this.#workers[index] as FleetWorker;
    const missedTokens = Math.max(1, promptTokens - worker.overlapBlocks * blockTokens);
    const missedBlocks = blocks.length - worker.overlapBlocks;
    const request = { sequenceHashes, missedTokens, missedBlocks, trackPrefill: true };
    this.#delaysMs.push(worker.take(this.#load.book(worker.load, request, atMs), blocks, atMs) - atMs);
  }

  #hotBlocks(hashes: BigUint64Array): number {
    const hot = this.policy.hotRequests ?? Number.POSITIVE_INFINITY;
    const first = hashes.findIndex((hash) => this.#book.waiting(hash) < hot);
    return first < 0 ? hashes.length : first;
  }
}

class FleetWorker implements Candidate {
  readonly weight = 1;
  readonly preference = 0;
  readonly activeOverlapBlocks = 0;
  overlapBlocks = 0;
  requests = 0;
  missedTokens = 0;
  hitBlocks = 0;
  readonly #held = new Set<number>();
  readonly #running: Running[] = [];
  #freeMs = 0;

  constructor(
    readonly load: WorkerLoad,
    readonly tokensPerMs: number,
  ) {}

  get worker() {
    return this.load.worker;
  }

  consider(blocks: readonly number[]): void {
    const first = blocks.findIndex((block) => !this.#held.has(block));
    this.overlapBlocks = first < 0 ? blocks.length : first;
  }

  /** Puts a booking at the end of the queue. Returns when its prefill will end. */
  take(booking: LoadBooking, blocks: readonly number[], nowMs: number): number {
    this.requests++;
    this.missedTokens += booking.missedTokens;
    this.hitBlocks += this.overlapBlocks;
    for (const block of blocks) this.#held.add(block);
    this.#freeMs = Math.max(this.#freeMs, nowMs) + booking.missedTokens / this.tokensPerMs;
    this.#running.push({ booking, endMs: this.#freeMs });
    return this.#freeMs;
  }

  endUntil(nowMs: number, load: BookedLoad): void {
    while (this.#running.length > 0 && (this.#running[0] as Running).endMs <= nowMs) {
      const { booking, endMs } = this.#running.shift() as Running;
      load.endPrefill(booking, endMs);
      load.release(booking, endMs);
    }
  }
}

/** Sends requests through a policy to workers of these speeds. */
export function playFleet(policy: Policy, tokensPerMs: readonly number[], arrivals: readonly Arrival[]): Outcome {
  return new Fleet(policy, tokensPerMs).run(arrivals);
}

/** The part of the delays, 0 to 1, that are at most what is returned. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(part * sorted.length) - 1] as number;
}

/** How much the busiest has beside the mean. */
export function imbalance(work: readonly number[]): number {
  return (Math.max(...work) * work.length) / work.reduce((sum, one) => sum + one, 0);
}
