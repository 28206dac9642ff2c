import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Runner } from "../harness.js";
import { randomHashes } from "../prng.js";
import type { Index, MakeIndex } from "./contract.js";
import { makeFleet } from "./overlaps.js";

const CHAIN = 64;
const WORKERS = 64;
/** Chains that are there at a time: 262,144 entries. */
const STANDING = 4_096;
/** Chains that take turns. */
const CHAINS = 2 * STANDING;
const OPERATIONS = 2_048;
const WARM_UP_ROUNDS = 4;

/**
 * Stores a chain that is not there, and makes room for it: by removing the one that has been there longest, or, where
 * `evicting`, by leaving that to a full index.
 */
export class Churn implements Runner {
  readonly operations = OPERATIONS;
  readonly #index: Index;
  readonly #evicting: boolean;
  readonly #fleet: readonly WorkerWithDpRank[] = makeFleet(WORKERS);
  readonly #chains: readonly BigUint64Array[];
  #turn = 0;

  constructor(make: MakeIndex, { evicting }: { evicting: boolean }) {
    const hashes = randomHashes(CHAINS * CHAIN, 4);
    this.#evicting = evicting;
    this.#chains = Array.from({ length: CHAINS }, (_, i) => hashes.subarray(i * CHAIN, (i + 1) * CHAIN));
    this.#index = make({ maxEntries: evicting ? STANDING * CHAIN : CHAINS * CHAIN });
    for (; this.#turn < STANDING; this.#turn++) this.#index.store(this.#worker(this.#turn), this.#chain(this.#turn));
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const turn = this.#turn++;
      this.#index.store(this.#worker(turn), this.#chain(turn));
      const last = turn - STANDING;
      if (!this.#evicting) this.#index.remove(this.#worker(last), this.#chain(last));
    }
    return this.#index.size.entries;
  }

  digest(): number {
    return this.#index.size.blocks;
  }

  finish(): number {
    let sum = 0;
    for (let turn = 0; turn < CHAINS; turn++) {
      const found = this.#index.overlap(this.#chain(turn))[0];
      sum = (Math.imul(sum, 31) + (found?.blocks ?? 0) + ((found?.worker.workerId as number | undefined) ?? 0)) >>> 0;
    }
    return sum;
  }

  #chain(turn: number): BigUint64Array {
    return this.#chains[turn % CHAINS] as BigUint64Array;
  }

  // A chain is of one worker: which one does not change from turn to turn.
  #worker(turn: number): WorkerWithDpRank {
    return this.#fleet[turn % WORKERS] as WorkerWithDpRank;
  }
}
