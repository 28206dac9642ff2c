import { createXXHash3, xxhash3, xxhash64 } from "hash-wasm";
import xxhash from "xxhash-wasm";
import type { Runner } from "../harness.js";
import { makeBlocks, makePrompts, Prompts } from "./prompts.js";

const SEED = 1337;

/** kvroute: the local and the sequence hash of every block, from tokens. */
export async function hashTokensOfKvroute(blockSize: number): Promise<Runner> {
  const { hashTokens } = await import("kvroute");
  const prompts = makePrompts();
  const options = { blockSize };
  const run = (prompt: number) => hashTokens(prompts[prompt] as Uint32Array, options).local;
  await check(
    Array.from(run(0), (hash) => hash),
    (bytes) => xxhash3(bytes, SEED, 0),
    blockSize,
  );
  return new Prompts((prompt) => run(prompt).length);
}

/** hash-wasm: the local hash of every block, left as it comes, in bytes. */
export async function xxh3OfHashWasm(blockSize: number): Promise<Runner> {
  const hasher = await createXXHash3(SEED, 0);
  const hash = (block: Uint8Array) => hasher.init().update(block).digest("binary");
  const blocks = makeBlocks(makePrompts(), blockSize);
  const { xxh3 } = await import("kvroute");
  const own = (blocks[0] as Uint8Array[]).map((block) => new DataView(hash(block).slice().buffer).getBigUint64(0));
  await check(own, async (bytes) => xxh3(bytes, BigInt(SEED)).toString(16), blockSize);
  return new Prompts((prompt) => hashEach(blocks[prompt] as Uint8Array[], hash));
}

/** xxhash-wasm has no XXH3; XXH64 of every block. */
export async function xxh64OfXxhashWasm(blockSize: number): Promise<Runner> {
  const { h64Raw } = await xxhash();
  const seed = BigInt(SEED);
  const hash = (block: Uint8Array) => h64Raw(block, seed);
  const blocks = makeBlocks(makePrompts(), blockSize);
  await check((blocks[0] as Uint8Array[]).map(hash), (bytes) => xxhash64(bytes, SEED, 0), blockSize);
  return new Prompts((prompt) => hashEach(blocks[prompt] as Uint8Array[], hash));
}

function hashEach(blocks: readonly Uint8Array[], hash: (block: Uint8Array) => unknown): number {
  let count = 0;
  for (const block of blocks) if (hash(block) !== undefined) count++;
  return count;
}

/** Compares the hashes of the first prompt with those of another library, which gives them in hexadecimal. */
async function check(
  hashes: readonly bigint[],
  other: (bytes: Uint8Array) => Promise<string>,
  blockSize: number,
): Promise<void> {
  const blocks = makeBlocks(makePrompts(), blockSize)[0] as Uint8Array[];
  if (hashes.length !== blocks.length) throw new Error(`Expected ${blocks.length} hashes, got ${hashes.length}.`);
  for (const [index, block] of blocks.entries()) {
    const expected = BigInt(`0x${await other(block)}`);
    if (hashes[index] !== expected)
      throw new Error(`Expected hash ${expected} of block ${index}, got ${hashes[index]}.`);
  }
}
