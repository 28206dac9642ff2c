import type { TokenHashes } from "../../src/core/token-hash.js";
import { generator, randomOrder } from "../prng.js";

// A fleet that has worked for a while: all workers hold the system prompt, each has chains of its own, and some requests
// are unfinished. Both services are filled by the same calls.

export const BLOCK_TOKENS = 16;
export const PROMPT_BLOCKS = 512;
export const PROMPT_TOKENS = BLOCK_TOKENS * PROMPT_BLOCKS;
export const WORKERS = 64;
const SYSTEM_BLOCKS = 32;
/** Unfinished requests, each with a chain of its own. */
const UNFINISHED = 128;
/** Prompts that are asked for, in turn. */
export const PROMPTS = 256;

export type HashPrompt = (tokens: Uint32Array) => TokenHashes["sequence"];

/** What the benchmarks call of a selection service. */
export interface Service {
  /** Says that a worker has computed a prompt, some time ago. */
  remember(worker: number, hashes: BigUint64Array): void;
  /** Chooses a worker for a prompt. */
  select(tokens: Uint32Array): { readonly worker: number; readonly overlapBlocks: number; readonly lastHash: bigint };
  /** Books a request on a worker. */
  reserve(id: string, worker: number, hashes: BigUint64Array, promptTokens: number): void;
  prefillComplete(id: string): void;
  free(id: string): void;
}

export interface Scene {
  readonly prompts: readonly Uint32Array[];
  readonly hashes: readonly BigUint64Array[];
}

/** Fills a service with so many blocks and its unfinished requests, and makes the prompts. */
export function setScene(service: Service, hash: HashPrompt, entries: number): Scene {
  const chains = Math.max(PROMPTS, Math.floor(entries / (PROMPT_BLOCKS - SYSTEM_BLOCKS)));
  const prompts: Uint32Array[] = [];
  const hashes: BigUint64Array[] = [];
  const system = hash(promptOf(0).subarray(0, SYSTEM_BLOCKS * BLOCK_TOKENS));
  for (let worker = 0; worker < WORKERS; worker++) service.remember(worker, system);
  for (const chain of randomOrder(chains, 3)) {
    // in no order, so that the prompts lie all over the index
    const tokens = promptOf(chain);
    const chainHashes = hash(tokens);
    if (chain < PROMPTS) {
      prompts[chain] = tokens;
      hashes[chain] = chainHashes;
    }
    if (chain * (PROMPT_BLOCKS - SYSTEM_BLOCKS) < entries) service.remember(chain % WORKERS, chainHashes);
  }
  for (let request = 0; request < UNFINISHED; request++) {
    const chainHashes = hash(promptOf(chains + request));
    service.reserve(`unfinished ${request}`, (request * 7) % WORKERS, chainHashes, PROMPT_TOKENS);
    if (request % 2 === 0) service.prefillComplete(`unfinished ${request}`);
  }
  return { prompts, hashes };
}

function promptOf(chain: number): Uint32Array {
  const system = generator(1);
  const own = generator(1_000 + chain);
  return Uint32Array.from(
    { length: PROMPT_TOKENS },
    (_, at) => (at < SYSTEM_BLOCKS * BLOCK_TOKENS ? system() : own()) >>> 15,
  );
}
