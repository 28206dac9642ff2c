import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasher } from "../../../src/core/hasher.js";
import { xxh3 } from "../../../src/core/token-hash.js";
import { scaled } from "../../support/scale.js";
import { referenceXxh3 } from "./token-hash.reference.js";

const WINDOW = hasher().window.length;
const SEEDS = [0n, 1n, 1337n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 0x9e37_79b9_7f4a_7c15n];
const anySeed = fc.oneof(fc.constantFrom(...SEEDS), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));

/** Bytes that look like noise, the same in every run. */
const noise = new Uint8Array(
  Uint32Array.from({ length: WINDOW }, (_, i) => Math.imul(i ^ (i << 7), 0x9e37_79b1)).buffer,
);

async function agree(bytes: Uint8Array, seed: bigint): Promise<void> {
  expect({ length: bytes.length, seed, hash: xxh3(bytes, seed) }).toEqual({
    length: bytes.length,
    seed,
    hash: await referenceXxh3(bytes, seed),
  });
}

describe("xxh3 beside hash-wasm", () => {
  test("agrees for every length from 0 to 5,000", async () => {
    for (let length = 0; length <= 5_000; length++) {
      const seed = SEEDS[length % SEEDS.length] as bigint;
      await agree(noise.subarray(5_000 - length, 5_000), seed);
    }
  });

  test("agrees for every length around a seam between two parts of the window", async () => {
    const near = [0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 240, 241, 1_023, 1_024, 1_025, 2_048];
    for (const seam of [WINDOW, 2 * WINDOW, 3 * WINDOW]) {
      for (const distance of near) {
        await agree(noise.subarray(0, seam - distance), SEEDS[2] as bigint);
        await agree(noise.subarray(3, 3 + seam + distance), SEEDS[6] as bigint);
      }
    }
  });

  test("agrees for any bytes under any seed", async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 5_000 }),
      fc.nat({ max: 4 * WINDOW - 8 }).map((length) => noise.subarray(8, 8 + length)),
    );
    await fc.assert(fc.asyncProperty(bytes, anySeed, agree), { numRuns: scaled(1_000) });
  });
});

describe("xxh3", () => {
  test("has 0 for its seed where none is given", () => {
    expect(xxh3(noise)).toBe(xxh3(noise, 0n));
    expect(xxh3(new Uint8Array(0))).toBe(0x2d06_8005_38d3_94c2n); // the published value for no bytes
  });

  test("is the same wherever the bytes stand and whatever stands around them", () => {
    for (const length of [0, 1, 3, 8, 16, 31, 128, 240, 241, 1_024, WINDOW + 40]) {
      const here = xxh3(noise.subarray(11, 11 + length), 7n);
      const padded = new Uint8Array(length + 100).fill(0xff);
      padded.set(noise.subarray(11, 11 + length), 50);
      xxh3(noise, 99n); // what was in the window before
      expect(xxh3(padded.subarray(50, 50 + length), 7n)).toBe(here);
      expect(xxh3(Buffer.from(padded.subarray(50, 50 + length)), 7n)).toBe(here);
    }
  });

  test("of a long input does not depend on a long input before it", () => {
    const alone = xxh3(noise.subarray(0, WINDOW + 5), 3n);
    xxh3(noise.subarray(9, 9 + 3 * WINDOW), 4n);
    expect(xxh3(noise.subarray(0, WINDOW + 5), 3n)).toBe(alone);
  });

  test("leaves its input as it was", () => {
    const bytes = noise.slice(0, WINDOW + 100);
    xxh3(bytes, 1n);
    expect(Buffer.compare(bytes, noise.subarray(0, WINDOW + 100))).toBe(0);
  });
});
