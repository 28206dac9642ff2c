import { xxhash3 } from "hash-wasm";
import { expect } from "vitest";
import type { HashOptions, TokenHashes } from "../../../src/core/token-hash.js";

/** XXH3 as another library computes it. */
export async function referenceXxh3(bytes: Uint8Array, seed: bigint): Promise<bigint> {
  const hex = await xxhash3(bytes, Number(seed & 0xffff_ffffn), Number(seed >> 32n));
  return BigInt(`0x${hex}`);
}

/** The rule of token hashes, written down with that library and without regard to speed. */
export async function referenceHashes(
  bytes: Uint8Array,
  blockBytes: number,
  { loraName = "", cacheSalt = "", parent }: HashOptions = {},
): Promise<TokenHashes> {
  const encode = (text: string) => new TextEncoder().encode(text);
  let seed = 1337n;
  if (loraName !== "") seed += await referenceXxh3(encode(loraName), 0n);
  if (cacheSalt !== "") seed += await referenceXxh3(encode(cacheSalt), 1n);
  seed %= 2n ** 64n;
  const local: bigint[] = [];
  const sequence: bigint[] = [];
  let previous = parent;
  for (let end = blockBytes; end <= bytes.length; end += blockBytes) {
    const hash = await referenceXxh3(bytes.slice(end - blockBytes, end), seed);
    const pair = new Uint8Array(BigUint64Array.of(previous ?? 0n, hash).buffer);
    previous = previous === undefined ? hash : await referenceXxh3(pair, 1337n);
    local.push(hash);
    sequence.push(previous);
  }
  return { local: BigUint64Array.from(local), sequence: BigUint64Array.from(sequence) };
}

/** Expects equal hashes. `toEqual` takes its time over long arrays, so it is asked only to say where they differ. */
export function expectSame(actual: TokenHashes, expected: TokenHashes): void {
  const equal = isEqual(actual.local, expected.local) && isEqual(actual.sequence, expected.sequence);
  if (!equal) expect(actual).toEqual(expected);
}

function isEqual(a: BigUint64Array, b: BigUint64Array): boolean {
  return bufferOf(a).equals(bufferOf(b));
}

function bufferOf({ buffer, byteOffset, byteLength }: BigUint64Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
