import type { Runner } from "../harness.js";
import { randomHashes } from "../prng.js";
import { fill, fold, type Pool, reserve } from "./contract.js";

// The life of a 64-block request in a full pool: half of its blocks are a prefix that many share, half are new.
const CAPACITY = 65_536;
const CHAIN = 32;
const SHARED_CHAINS = 64;
const GROUPS = 8_192;
const OPERATIONS = 2_048;
const WARM_UP_ROUNDS = 8;

interface Request {
  readonly hashes: BigUint64Array;
  readonly prefix: BigUint64Array;
  readonly fresh: BigUint64Array;
}

/** Requests in a ring, long enough that a group is gone from the pool when its turn comes again. */
function makeRequests(): Request[] {
  const shared = randomHashes(SHARED_CHAINS * CHAIN, 1);
  const fresh = randomHashes(GROUPS * CHAIN, 2);
  const all = new BigUint64Array(GROUPS * CHAIN * 2);
  return Array.from({ length: GROUPS }, (_, group) => {
    const start = group * CHAIN * 2;
    const chain = (group % SHARED_CHAINS) * CHAIN;
    all.set(shared.subarray(chain, chain + CHAIN), start);
    all.set(fresh.subarray(group * CHAIN, (group + 1) * CHAIN), start + CHAIN);
    return {
      hashes: all.subarray(start, start + CHAIN * 2),
      prefix: all.subarray(start, start + CHAIN),
      fresh: all.subarray(start + CHAIN, start + CHAIN * 2),
    };
  });
}

export class LifeCycle<R> implements Runner {
  readonly operations = OPERATIONS;
  readonly #pool: Pool<R>;
  readonly #requests = makeRequests();
  readonly #ids = new Float64Array(CHAIN * 2);
  #turn = 0;
  #removed: BigUint64Array = new BigUint64Array(0);
  #sum = 0;

  constructor(make: (options: { capacity: number }) => Pool<R>) {
    this.#pool = make({ capacity: CAPACITY });
    fill(this.#pool, randomHashes(SHARED_CHAINS * CHAIN, 1), CHAIN);
    // The pool is full after two rounds. All that is evicted during the warm-up goes into the digest.
    for (let operation = 0; operation < WARM_UP_ROUNDS * OPERATIONS; operation++) {
      this.#sum += this.#serve();
      this.#sum = fold(this.#sum, this.#removed);
    }
  }

  run(): number {
    let sum = 0;
    for (let operation = 0; operation < OPERATIONS; operation++) sum += this.#serve();
    return sum;
  }

  digest(): number {
    this.#sum = fold(this.#sum, this.#removed);
    return this.#sum + this.#pool.numActive + this.#pool.numInactive;
  }

  finish(): number {
    return fold(0, reserve(this.#pool, [], CAPACITY).removed);
  }

  #serve(): number {
    const pool = this.#pool;
    const request = this.#requests[this.#turn] as Request;
    this.#turn = (this.#turn + 1) % GROUPS;
    const match = pool.matchPrefix(request.hashes);
    const { reservation, removed } = reserve(pool, request.prefix, CHAIN);
    const prefixIds = pool.activatePrefix(reservation);
    const { ids, visible } = pool.allocateAllCached(reservation, request.fresh);
    this.#ids.set(prefixIds, 0);
    this.#ids.set(ids, CHAIN);
    pool.releaseChain(this.#ids);
    this.#removed = removed;
    return match.resident + 3 * match.active + 5 * visible + 7 * removed.length;
  }
}
