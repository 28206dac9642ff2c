import type { Runner } from "../harness.js";
import { generator } from "../prng.js";

/** Tokens of a prompt: 32,768 bytes. */
export const PROMPT_TOKENS = 8_192;
export const TOKEN_BYTES = 4;

const PROMPTS = 32;
const WARM_UP_ROUNDS = 20;

/** Hashes the blocks of one prompt. Returns how many hashes it made. */
export type HashPrompt = (prompt: number) => number;

/** The prompts of a benchmark: together 1 MiB, more than the nearest caches hold. */
export function makePrompts(): Uint32Array<ArrayBuffer>[] {
  const next = generator(11);
  return Array.from({ length: PROMPTS }, () => Uint32Array.from({ length: PROMPT_TOKENS }, () => next() % 128_000));
}

/** The blocks of each prompt as bytes, cut before the clock runs. */
export function makeBlocks(prompts: readonly Uint32Array<ArrayBuffer>[], blockSize: number): Uint8Array[][] {
  const bytes = blockSize * TOKEN_BYTES;
  return prompts.map(({ buffer, length }) =>
    Array.from({ length: length / blockSize }, (_, index) => new Uint8Array(buffer, index * bytes, bytes)),
  );
}

/**
 * Hashes prompts in turn. The contenders do not compute the same function, so the checksum counts hashes; that they are
 * the right ones is seen to before, by each contender, with a library that it does not use itself.
 */
export class Prompts implements Runner {
  readonly operations = 128;
  readonly #hash: HashPrompt;

  constructor(hash: HashPrompt) {
    this.#hash = hash;
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.run();
  }

  run(): number {
    let hashes = 0;
    for (let operation = 0; operation < this.operations; operation++) hashes += this.#hash(operation % PROMPTS);
    return hashes;
  }

  digest(): number {
    return PROMPTS;
  }

  finish(): number {
    return this.run();
  }
}
