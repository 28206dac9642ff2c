import type { Runner } from "../harness.js";
import { type HashPrompt, PROMPT_TOKENS, PROMPTS, type Scene, type Service, setScene, WORKERS } from "./scene.js";

const SELECTS = 1_024;
const LIVES = 512;
const WARM_UP_ROUNDS = 4;

/** A service that remembers nothing: for the prompts alone. */
const nowhere: Service = {
  remember: () => {},
  select: () => ({ worker: 0, overlapBlocks: 0, lastHash: 0n }),
  reserve: () => {},
  prefillComplete: () => {},
  free: () => {},
};

/** Hashes the prompts that the others choose workers for. */
export class Hashing implements Runner {
  readonly operations = SELECTS;
  readonly #hash: HashPrompt;
  readonly #prompts: readonly Uint32Array[];

  constructor(hash: HashPrompt) {
    this.#hash = hash;
    this.#prompts = setScene(nowhere, hash, 0).prompts;
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    let sum = 0;
    for (let at = 0; at < SELECTS; at++) {
      const last = this.#hash(this.#prompts[at % PROMPTS] as Uint32Array).at(-1) as bigint;
      sum = (Math.imul(sum, 31) + Number(last & 0xffffn)) >>> 0;
    }
    return sum;
  }

  digest(): number {
    return 0;
  }

  finish(): number {
    return 0;
  }
}

/** Chooses workers. Its checksum is of the hashes, or of the workers and what they hold. */
export class Selects implements Runner {
  readonly operations = SELECTS;
  readonly #service: Service;
  readonly #scene: Scene;
  readonly #checks: "hashes" | "workers";

  constructor(service: Service, hash: HashPrompt, entries: number, checks: "hashes" | "workers") {
    this.#service = service;
    this.#scene = setScene(service, hash, entries);
    this.#checks = checks;
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    const isOfHashes = this.#checks === "hashes";
    let sum = 0;
    for (let at = 0; at < SELECTS; at++) {
      const { worker, overlapBlocks, lastHash } = this.#service.select(
        this.#scene.prompts[at % PROMPTS] as Uint32Array,
      );
      sum = (Math.imul(sum, 31) + (isOfHashes ? Number(lastHash & 0xffffn) : worker + 64 * overlapBlocks)) >>> 0;
    }
    return sum;
  }

  digest(): number {
    return 0;
  }

  finish(): number {
    return 0;
  }
}

/** Books requests and lets them end. */
export class Lives implements Runner {
  readonly operations = LIVES;
  readonly #service: Service;
  readonly #scene: Scene;
  #turn = 0;

  constructor(service: Service, hash: HashPrompt, entries: number) {
    this.#service = service;
    this.#scene = setScene(service, hash, entries);
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    for (let at = 0; at < LIVES; at++) {
      const turn = this.#turn++;
      const id = `request ${turn}`;
      const hashes = this.#scene.hashes[turn % PROMPTS] as BigUint64Array;
      this.#service.reserve(id, turn % WORKERS, hashes, PROMPT_TOKENS);
      this.#service.prefillComplete(id);
      this.#service.free(id);
    }
    return this.#turn;
  }

  digest(): number {
    return this.#service.select(this.#scene.prompts[0] as Uint32Array).overlapBlocks;
  }

  finish(): number {
    return this.digest();
  }
}
