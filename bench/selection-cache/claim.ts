import type { Runner } from "../harness.js";
import { randomHashes } from "../prng.js";
import { type Cache, HASHES, type MakeCache, makeIds, PARTITION, selectionOf } from "./contract.js";

const RESIDENT = 4_096;
const OPERATIONS = 8_192;
const WARM_UP_ROUNDS = 8;

/**
 * Inserts a selection, then claims one: the same, while others that nobody claims fill the cache, or the one that was
 * inserted so many inserts ago. Hashes are handed over from a pool that outlasts their stay, or copied at each insert.
 */
export class Claim implements Runner {
  readonly operations = OPERATIONS;
  readonly #cache: Cache;
  readonly #lag: number;
  readonly #isCopied: boolean;
  readonly #ids = makeIds(OPERATIONS, 1);
  readonly #hashes: readonly BigUint64Array[];
  #turn = 0;

  constructor(make: MakeCache, { lag, isCopied }: { lag: 0 | typeof RESIDENT; isCopied: boolean }) {
    this.#cache = make({ maxEntries: 2 * RESIDENT, maxBytes: Number.POSITIVE_INFINITY });
    this.#lag = lag;
    this.#isCopied = isCopied;
    const all = randomHashes(2 * RESIDENT * HASHES, 2);
    this.#hashes = Array.from({ length: 2 * RESIDENT }, (_, n) => all.slice(n * HASHES, (n + 1) * HASHES));
    const others = makeIds(RESIDENT, 3);
    for (let n = 0; n < RESIDENT; n++) {
      if (lag === 0) this.#cache.insert(others[n] as string, selectionOf(this.#hashes[n] as BigUint64Array, n), 0);
      else this.#insert();
    }
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    const cache = this.#cache;
    let sum = 0;
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const id = this.#ids[(this.#turn - this.#lag) % OPERATIONS] as string;
      this.#insert();
      const peeked = cache.peek(PARTITION, id, 1);
      if (peeked === null) throw new Error(`Expected a selection ${id} to claim, got none.`);
      if (cache.remove(PARTITION, id, peeked.generation)) sum += peeked.selection.sequenceHashes.length;
      sum += peeked.generation;
    }
    return sum;
  }

  digest(): number {
    return this.#cache.size + this.#cache.totalBytes;
  }

  finish(): number {
    return this.digest();
  }

  #insert(): void {
    const turn = this.#turn++;
    const hashes = this.#hashes[turn % this.#hashes.length] as BigUint64Array;
    const own = this.#isCopied ? new BigUint64Array(hashes) : hashes;
    this.#cache.insert(this.#ids[turn % OPERATIONS] as string, selectionOf(own, turn & 63), 1);
  }
}
