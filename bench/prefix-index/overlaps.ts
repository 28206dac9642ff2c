import type { WorkerWithDpRank } from "../../src/core/keys.js";
import type { Runner } from "../harness.js";
import { generator, randomHashes } from "../prng.js";
import type { Index, MakeIndex } from "./contract.js";

// A fleet whose workers all hold the same system prompt of 32 blocks, and each many conversations of 480 blocks more,
// every one of them known to two workers. A query asks for a conversation that is known.
const SHARED = 32;
const TAIL = 480;
const COPIES = 2;
const QUERIES = 512;
const WARM_UP_ROUNDS = 4;

/** Asks for the overlap of `length` hashes. */
export class Overlaps implements Runner {
  readonly operations = QUERIES;
  readonly #index: Index;
  readonly #queries: readonly BigUint64Array[];

  constructor(make: MakeIndex, { entries, workers, length }: { entries: number; workers: number; length: number }) {
    this.#index = make({ maxEntries: entries });
    const fleet = makeFleet(workers);
    const shared = randomHashes(SHARED, 1);
    for (const worker of fleet) this.#index.store(worker, shared);
    const count = Math.floor((entries - workers * SHARED) / TAIL / COPIES);
    const tails = randomHashes(count * TAIL, 2);
    const next = generator(3);
    const chains = Array.from({ length: count }, (_, i) => {
      const chain = new BigUint64Array(SHARED + TAIL);
      chain.set(shared);
      chain.set(tails.subarray(i * TAIL, (i + 1) * TAIL), SHARED);
      return chain;
    });
    for (const chain of chains) {
      const first = next() % workers;
      for (let copy = 0; copy < COPIES; copy++) {
        this.#index.store(fleet[(first + copy) % workers] as WorkerWithDpRank, chain);
      }
    }
    this.#queries = Array.from({ length: QUERIES }, () => (chains[next() % count] as BigUint64Array).slice(0, length));
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    let sum = 0;
    for (const query of this.#queries) {
      const found = this.#index.overlap(query);
      const best = found[0] as { worker: WorkerWithDpRank; blocks: number };
      sum += found.length + best.blocks * 3 + (best.worker.workerId as number);
    }
    return sum;
  }

  digest(): number {
    return this.#index.size.entries + 7 * this.#index.size.blocks;
  }

  finish(): number {
    let sum = 0;
    for (const query of this.#queries) {
      for (const { worker, blocks } of this.#index.overlap(query)) {
        sum = (Math.imul(sum, 31) + blocks * 1_031 + (worker.workerId as number)) >>> 0;
      }
    }
    return sum;
  }
}

export function makeFleet(workers: number): WorkerWithDpRank[] {
  return Array.from({ length: workers }, (_, workerId) => ({ workerId, dpRank: 0 }));
}
