import type { Hashes } from "../../src/core/keys.js";
import type { Runner } from "../harness.js";
import { randomHashes, randomOrder } from "../prng.js";
import { fill, fold, type Pool, reserve } from "./contract.js";

// Touching resident blocks, so that they are evicted later: pin, unpin. Nothing is evicted.
const CAPACITY = 65_536;
const CHAIN = 32;
const WARM_UP_ROUNDS = 8;

/** Batches of resident hashes in random order. Batches of one are lists, as a caller with one hash writes them. */
function makeBatches(hashes: BigUint64Array, length: number): Hashes[] {
  const shuffled = BigUint64Array.from(randomOrder(hashes.length, 4), (i) => hashes[i] as bigint);
  if (length === 1) return Array.from(shuffled, (hash) => [hash]);
  return Array.from({ length: hashes.length / length }, (_, i) => shuffled.subarray(i * length, (i + 1) * length));
}

export class Touch<R> implements Runner {
  readonly operations: number;
  readonly #pool: Pool<R>;
  readonly #hashes = randomHashes(CAPACITY, 3);
  readonly #batches: readonly Hashes[];
  #turn = 0;

  constructor(make: (options: { capacity: number }) => Pool<R>, batchLength: number, operations: number) {
    this.operations = operations;
    this.#pool = make({ capacity: CAPACITY });
    this.#batches = makeBatches(this.#hashes, batchLength);
    fill(this.#pool, this.#hashes, CHAIN);
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    const pool = this.#pool;
    const batches = this.#batches;
    let sum = 0;
    for (let operation = 0; operation < this.operations; operation++) {
      const batch = batches[this.#turn] as Hashes;
      this.#turn = (this.#turn + 1) % batches.length;
      const { reservation, removed } = reserve(pool, batch, 0);
      sum += 1 + removed.length;
      pool.cancel(reservation);
    }
    return sum;
  }

  digest(): number {
    return this.#pool.numActive * CAPACITY + this.#pool.numInactive;
  }

  finish(): number {
    return fold(0, reserve(this.#pool, [], CAPACITY).removed);
  }
}
