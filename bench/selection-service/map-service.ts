import { BLOCK_TOKENS, type HashPrompt, type Service, WORKERS } from "./scene.js";

// The service as one writes it down first, with the same rule: an index and a table of blocks in use in Maps of Sets and
// Maps. It has no bounds, no leases and no checks.

interface MapBooking {
  readonly worker: number;
  readonly hashes: BigUint64Array;
  readonly tokens: number;
  prefilling: boolean;
}

const BASE_TAX = 2;
const QUEUE_TAX = 2;
const HOT_REQUESTS = 8;
const NEAR_TIE = 0.2;

/** Selection in plain Maps. */
export class MapService implements Service {
  readonly #hash: HashPrompt;
  readonly #holders = new Map<bigint, Set<number>>();
  readonly #active = new Map<bigint, Map<number, number>>();
  readonly #waiting = new Map<bigint, number>();
  readonly #bookings = new Map<string, MapBooking>();
  readonly #queues: Set<MapBooking>[] = Array.from({ length: WORKERS }, () => new Set());
  readonly #queued = new Float64Array(WORKERS);
  readonly #recent = new Float64Array(WORKERS);
  #averageMissed = 0;

  constructor(hash: HashPrompt) {
    this.#hash = hash;
  }

  remember(worker: number, hashes: BigUint64Array): void {
    for (const hash of hashes) {
      const holders = this.#holders.get(hash);
      if (holders === undefined) this.#holders.set(hash, new Set([worker]));
      else holders.add(worker);
    }
  }

  select(tokens: Uint32Array) {
    const hashes = this.#hash(tokens);
    const overlap = this.#overlap(hashes);
    const hotBlocks = this.#hotBlocks(hashes);
    const sorted = this.#queues.map(({ size }) => size).sort((a, b) => a - b);
    const tax = BASE_TAX + QUEUE_TAX * (sorted[(WORKERS - 1) >>> 1] as number);
    const costs = this.#queued.map((wait, worker) => {
      const blocks = overlap[worker] as number;
      const miss = Math.max(1, tokens.length - blocks * BLOCK_TOKENS);
      const free = Math.min(miss, Math.max(0, hotBlocks - blocks) * BLOCK_TOKENS);
      return wait + miss + tax * (miss - free);
    });
    const limit = Math.min(...costs) + NEAR_TIE * this.#averageMissed;
    let worker = -1;
    for (let at = 0; at < WORKERS; at++) {
      if ((costs[at] as number) > limit) continue;
      if (worker < 0 || (this.#recent[at] as number) < (this.#recent[worker] as number)) worker = at;
    }
    return { worker, overlapBlocks: overlap[worker] as number, lastHash: hashes.at(-1) as bigint };
  }

  reserve(id: string, worker: number, hashes: BigUint64Array, tokens: number): void {
    const booking = { worker, hashes: hashes.slice(), tokens, prefilling: true };
    this.#bookings.set(id, booking);
    for (const hash of hashes) {
      const workers = this.#active.get(hash);
      if (workers === undefined) this.#active.set(hash, new Map([[worker, 1]]));
      else workers.set(worker, (workers.get(worker) ?? 0) + 1);
      this.#waiting.set(hash, (this.#waiting.get(hash) ?? 0) + 1);
    }
    this.remember(worker, hashes);
    (this.#queues[worker] as Set<MapBooking>).add(booking);
    this.#queued[worker] = (this.#queued[worker] as number) + tokens;
    this.#recent[worker] = (this.#recent[worker] as number) + tokens;
    this.#averageMissed += this.#averageMissed === 0 ? tokens : 0.01 * (tokens - this.#averageMissed);
  }

  prefillComplete(id: string): void {
    const booking = this.#bookings.get(id);
    if (booking?.prefilling !== true) return;
    const { worker, hashes, tokens } = booking;
    booking.prefilling = false;
    (this.#queues[worker] as Set<MapBooking>).delete(booking);
    this.#queued[worker] = (this.#queued[worker] as number) - tokens;
    for (const hash of hashes) {
      const left = (this.#waiting.get(hash) ?? 0) - 1;
      if (left > 0) this.#waiting.set(hash, left);
      else this.#waiting.delete(hash);
    }
  }

  free(id: string): void {
    const booking = this.#bookings.get(id);
    if (booking === undefined) return;
    this.prefillComplete(id);
    this.#bookings.delete(id);
    for (const hash of booking.hashes) {
      const workers = this.#active.get(hash) as Map<number, number>;
      const left = (workers.get(booking.worker) ?? 0) - 1;
      if (left > 0) workers.set(booking.worker, left);
      else workers.delete(booking.worker);
      if (workers.size === 0) this.#active.delete(hash);
    }
  }

  /** Counts, for each worker, the leading blocks that it holds, or will when its unfinished requests are done. */
  #overlap(hashes: BigUint64Array): Uint32Array {
    const blocks = new Uint32Array(WORKERS);
    let left = Array.from({ length: WORKERS }, (_, worker) => worker);
    for (let level = 0; level < hashes.length && left.length > 0; level++) {
      const hash = hashes[level] as bigint;
      const holders = this.#holders.get(hash);
      const active = this.#active.get(hash);
      left = left.filter((worker) => holders?.has(worker) === true || active?.has(worker) === true);
      for (const worker of left) blocks[worker] = level + 1;
    }
    return blocks;
  }

  #hotBlocks(hashes: BigUint64Array): number {
    const end = hashes.findIndex((hash) => (this.#waiting.get(hash) ?? 0) < HOT_REQUESTS);
    return end < 0 ? hashes.length : end;
  }
}
