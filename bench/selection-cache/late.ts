import type { Runner } from "../harness.js";
import { randomOrder } from "../prng.js";
import { type Cache, HASHES, type MakeCache, makeIds, selectionOf } from "./contract.js";

const RESIDENT = 65_536;
const OPERATIONS = 2_048;
const WARM_UP_ROUNDS = 8;

/** Inserts with anchors in random order into a full cache, so that each goes somewhere into the middle and evicts one. */
export class Late implements Runner {
  readonly operations = OPERATIONS;
  readonly #cache: Cache;
  readonly #ids = makeIds(4 * RESIDENT, 1);
  readonly #anchors = randomOrder(4 * RESIDENT, 2);
  readonly #hashes = new BigUint64Array(HASHES);
  #turn = 0;

  constructor(make: MakeCache) {
    this.#cache = make({ maxEntries: RESIDENT, maxBytes: Number.POSITIVE_INFINITY });
    for (let n = 0; n < RESIDENT; n++) this.#insert();
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    let sum = 0;
    for (let operation = 0; operation < OPERATIONS; operation++) sum += this.#insert();
    return sum;
  }

  digest(): number {
    return this.#cache.size + this.#cache.totalBytes;
  }

  finish(): number {
    return this.digest();
  }

  // Anchors move on by one lap each time, else the newest would stay for ever and nothing else would.
  #insert(): number {
    const turn = this.#turn++;
    const at = turn % this.#ids.length;
    const anchor = (this.#anchors[at] as number) / 4 + turn;
    return this.#cache.insert(this.#ids[at] as string, selectionOf(this.#hashes, turn & 63), 0, anchor);
  }
}
