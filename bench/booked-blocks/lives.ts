import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Runner } from "../harness.js";
import { randomHashes } from "../prng.js";
import type { Booked } from "./contract.js";

const WORKERS = 64;
/** The blocks of a request: the first of them are the same in all, the others the same in a conversation. */
const LENGTH = 512;
const SHARED = 32;
const CONVERSATIONS = 256;
/** Requests under way at a time: eight a worker. The younger half has not ended its prefill. */
const STANDING = 512;
const HOT = 8;
const OPERATIONS = 512;
const WARM_UP_ROUNDS = 4;

/**
 * Asks where the blocks of a request are active, and, unless only that is to be measured, books it, ends the prefill of
 * another and takes the oldest back.
 */
export class Lives implements Runner {
  readonly operations = OPERATIONS;
  readonly #booked: Booked;
  readonly #asksOnly: boolean;
  readonly #fleet: readonly WorkerWithDpRank[] = Array.from({ length: WORKERS }, (_, workerId) =>
    Object.freeze({ workerId, dpRank: 0 }),
  );
  readonly #chains: readonly BigUint64Array[];
  #turn = 0;

  constructor(booked: Booked, { asksOnly }: { asksOnly: boolean }) {
    this.#booked = booked;
    this.#asksOnly = asksOnly;
    const shared = randomHashes(SHARED, 5);
    const tails = randomHashes(CONVERSATIONS * (LENGTH - SHARED), 6);
    this.#chains = Array.from({ length: CONVERSATIONS }, (_, i) => {
      const chain = new BigUint64Array(LENGTH);
      chain.set(shared);
      chain.set(tails.subarray(i * (LENGTH - SHARED), (i + 1) * (LENGTH - SHARED)), SHARED);
      return chain;
    });
    for (; this.#turn < STANDING; this.#turn++) {
      booked.book(this.#worker(this.#turn), this.#chain(this.#turn));
      if (this.#turn < STANDING / 2) booked.settle(this.#chain(this.#turn));
    }
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    let sum = 0;
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const turn = this.#turn++;
      const { blocks, hotBlocks } = this.#booked.potential(this.#chain(turn), HOT);
      for (const count of blocks) sum += count;
      sum += 7 * hotBlocks;
      if (this.#asksOnly) continue;
      sum += this.#booked.book(this.#worker(turn), this.#chain(turn));
      this.#booked.settle(this.#chain(turn - STANDING / 2));
      const last = turn - STANDING;
      sum += this.#booked.unbook(this.#worker(last), this.#chain(last), false);
    }
    return sum;
  }

  digest(): number {
    return this.#booked.size.entries + 7 * this.#booked.size.blocks;
  }

  finish(): number {
    let sum = 0;
    for (const chain of this.#chains) {
      const { workers, blocks, hotBlocks } = this.#booked.potential(chain, HOT);
      workers.forEach(({ workerId }, i) => {
        sum += (blocks[i] as number) * (1 + (workerId as number));
      });
      sum = (Math.imul(sum, 31) + hotBlocks) >>> 0;
    }
    return sum;
  }

  #chain(turn: number): BigUint64Array {
    return this.#chains[turn % CONVERSATIONS] as BigUint64Array;
  }

  // A conversation moves on to another worker each time that it comes.
  #worker(turn: number): WorkerWithDpRank {
    return this.#fleet[(turn + Math.floor(turn / CONVERSATIONS) * 5) % WORKERS] as WorkerWithDpRank;
  }
}
