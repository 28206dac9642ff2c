import { setTimeout } from "node:timers/promises";
import { randomHashes } from "../prng.js";
import { fill, type Pool } from "./contract.js";

const CHAIN = 32;

/** Blocks to measure at least: the heap breathes by 100 KiB, so that one small pool would be lost in it. */
const BLOCKS_MIN = 262_144;

/** Bytes that a full pool of `capacity` blocks keeps alive: heap and array buffers after collections. */
export async function measureHeap<R>(
  make: (options: { capacity: number }) => Pool<R>,
  capacity: number,
): Promise<number> {
  const hashes = randomHashes(capacity, 5);
  const count = Math.ceil(BLOCKS_MIN / capacity);
  fill(make({ capacity: CHAIN }), hashes.subarray(0, CHAIN), CHAIN); // what the code takes is not the pool's
  const before = await liveBytes();
  const pools = Array.from({ length: count }, () => make({ capacity }));
  for (const pool of pools) fill(pool, hashes, CHAIN);
  const bytes = (await liveBytes()) - before;
  for (const pool of pools) requireFull(pool, capacity);
  return bytes / count;
}

/** Bytes that a full pool of `capacity` blocks says it holds. */
export function readMemory<R, P extends Pool<R> & { readonly memoryBytes: number }>(pool: P, capacity: number): number {
  fill(pool, randomHashes(capacity, 5), CHAIN);
  requireFull(pool, capacity);
  return pool.memoryBytes;
}

function requireFull<R>(pool: Pool<R>, capacity: number): void {
  if (pool.numInactive !== capacity) throw new Error(`Expected ${capacity} resident blocks, got ${pool.numInactive}.`);
}

async function liveBytes(): Promise<number> {
  if (globalThis.gc === undefined) throw new Error("Expected --expose-gc.");
  for (let i = 0; i < 4; i++) {
    globalThis.gc();
    await setTimeout(10); // array buffers are freed beside the program, after the collection that finds them
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
