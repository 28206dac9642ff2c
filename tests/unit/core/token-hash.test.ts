import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasher } from "../../../src/core/hasher.js";
import { hashText, hashTokens, seedOf, type TokenHashes } from "../../../src/core/token-hash.js";
import { CorePanicError } from "../../../src/errors.js";
import { scaled } from "../../support/scale.js";
import { expectSame, referenceHashes } from "./token-hash.reference.js";

const WINDOW_TOKENS = hasher().window.length / 4;
const tokensTo = (length: number, from = 1) => Uint32Array.from({ length }, (_, i) => i + from);
const bytesOf = (tokens: Uint32Array) => new Uint8Array(tokens.slice().buffer);

/** Tokens that look like noise, the same in every run. */
const noise = Uint32Array.from({ length: 4 * WINDOW_TOKENS }, (_, i) => Math.imul(i ^ (i << 9), 0x85eb_ca77) >>> 0);

const name = fc.oneof(fc.constant(""), fc.string({ unit: "grapheme", maxLength: 40 }), fc.constant("x".repeat(20_000)));
const anyWord = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const names = fc.record({ loraName: name, cacheSalt: name }, { requiredKeys: [] });

describe("hashTokens", () => {
  test("of the tokens 1 to 12 in blocks of 4 is what Dynamo publishes", () => {
    const local = [14643705804678351452n, 16777012769546811212n, 483935686894639516n];
    const sequence = [14643705804678351452n, 4945711292740353085n, 12583592247330656132n];
    expect(hashTokens(tokensTo(12), { blockSize: 4 })).toEqual({
      local: BigUint64Array.from(local),
      sequence: BigUint64Array.from(sequence),
    });
  });

  test("depends on the adapter and on the salt, each in its own way", () => {
    const first = (options: object) => hashTokens(tokensTo(4), { blockSize: 4, ...options }).local[0];
    expect(seedOf({ loraName: "adapter-a" })).toBe(8842669519798868182n);
    expect(first({ loraName: "adapter-a" })).toBe(11381080598872079209n);
    expect(seedOf({ cacheSalt: "tenant-a" })).toBe(1948188790972764086n);
    expect(first({ cacheSalt: "tenant-a" })).toBe(5738685477468498325n);
    expect(first({ loraName: "a" })).not.toBe(first({ cacheSalt: "a" }));
  });

  test("takes an empty adapter or salt for none", () => {
    const plain = hashTokens(tokensTo(8), { blockSize: 4 });
    expect(hashTokens(tokensTo(8), { blockSize: 4, loraName: "", cacheSalt: "" })).toEqual(plain);
    expect(hashTokens(tokensTo(8), { blockSize: 4, loraName: undefined, parent: undefined })).toEqual(plain);
  });

  test("takes names of any length", async () => {
    for (const length of [10_922, 10_923, 32_768, 100_000]) {
      const loraName = "é".repeat(length);
      const expected = await referenceHashes(bytesOf(tokensTo(4)), 16, { loraName, cacheSalt: loraName });
      expect(hashTokens(tokensTo(4), { blockSize: 4, loraName, cacheSalt: loraName })).toEqual(expected);
    }
  });

  test("gives no hash to a partial last block", () => {
    const full = hashTokens(tokensTo(8), { blockSize: 4 });
    expect(hashTokens(tokensTo(11), { blockSize: 4 })).toEqual(full);
    const none = { local: new BigUint64Array(0), sequence: new BigUint64Array(0) };
    expect(hashTokens(tokensTo(3), { blockSize: 4 })).toEqual(none);
    expect(hashTokens(new Uint32Array(0), { blockSize: 4_096, parent: 5n })).toEqual(none);
  });

  test("follows the rule for every block size of 1 to 130 tokens and for large ones", async () => {
    const sizes = [...Array.from({ length: 130 }, (_, i) => i + 1), 255, 256, 257, 1_000, 2_048, 3_000, 4_095, 4_096];
    for (const blockSize of sizes) {
      const tokens = noise.subarray(7, 7 + 3 * blockSize + 1);
      const expected = await referenceHashes(bytesOf(tokens), 4 * blockSize);
      expect({ blockSize, ...hashTokens(tokens, { blockSize }) }).toEqual({ blockSize, ...expected });
    }
  });

  test("follows the rule where an input passes the window or the number of blocks in one crossing", async () => {
    for (const [blockSize, blocks] of [
      [16, 512],
      [16, 513],
      [1, 1_536],
      [1, 1_537],
      [1, 3_073],
      [3_000, 3],
      [4_096, 5],
    ]) {
      const tokens = noise.subarray(0, (blockSize as number) * (blocks as number) + 1).map((token) => ~token);
      const options = { blockSize: blockSize as number, parent: 2n ** 63n };
      expectSame(hashTokens(tokens, options), await referenceHashes(bytesOf(tokens), 4 * options.blockSize, options));
    }
  });

  test("follows the rule for any tokens, names and parent", async () => {
    const tokens = fc.uint32Array({ maxLength: 300 });
    const anything = fc.asyncProperty(
      tokens,
      fc.integer({ min: 1, max: 80 }),
      names,
      fc.option(anyWord),
      async (...drawn) => {
        const [tokens, blockSize, names, parent] = drawn;
        const options = { ...names, parent: parent ?? undefined };
        const expected = await referenceHashes(bytesOf(tokens), 4 * blockSize, options);
        expect(hashTokens(tokens, { ...options, blockSize })).toEqual(expected);
      },
    );
    await fc.assert(anything, { numRuns: scaled(300) });
  });

  test("of two parts, the second continued from the first, are those of the whole", () => {
    const law = fc.property(
      fc.integer({ min: 1, max: 64 }),
      fc.nat({ max: 3_000 }),
      fc.nat({ max: 3_000 }),
      names,
      (blockSize, blocks, more, names) => {
        const cut = Math.min(blocks * blockSize, noise.length - (noise.length % blockSize));
        const options = { ...names, blockSize };
        const whole = hashTokens(noise.subarray(0, cut + more), options);
        const start = hashTokens(noise.subarray(0, cut), options);
        const rest = hashTokens(noise.subarray(cut, cut + more), { ...options, parent: start.sequence.at(-1) });
        expectSame(joined(start, rest), whole);
      },
    );
    fc.assert(law, { numRuns: scaled(100) });
  });

  test("takes a parent of 0 for a parent", async () => {
    const options = { blockSize: 4, parent: 0n };
    const hashes = hashTokens(tokensTo(4), options);
    expect(hashes).toEqual(await referenceHashes(bytesOf(tokensTo(4)), 16, options));
    expect(hashes.sequence[0]).not.toBe(hashes.local[0]);
  });

  test("gives out arrays of the caller's own", () => {
    const one = hashTokens(tokensTo(1_200), { blockSize: 4 });
    const copy = { local: one.local.slice(), sequence: one.sequence.slice() };
    const two = hashTokens(tokensTo(1_200, 7), { blockSize: 4 });
    two.local.fill(0n);
    hashTokens(tokensTo(1_200), { blockSize: 4 }).sequence.fill(1n);
    expect(one).toEqual(copy);
  });

  test("hashes what an array shows of its buffer, shared buffers and arrays of another realm included", async () => {
    const expected = hashTokens(tokensTo(32), { blockSize: 16 });
    const wide = new Uint32Array(100).fill(7);
    wide.set(tokensTo(32), 3);
    expect(hashTokens(wide.subarray(3, 35), { blockSize: 16 })).toEqual(expected);
    const shared = new Uint32Array(new SharedArrayBuffer(4 * 40), 4 * 5, 32);
    shared.set(tokensTo(32));
    expect(hashTokens(shared, { blockSize: 16 })).toEqual(expected);
    const { runInNewContext } = await import("node:vm");
    expect(hashTokens(runInNewContext("Uint32Array.from({ length: 32 }, (_, i) => i + 1)"), { blockSize: 16 })).toEqual(
      expected,
    );
  });

  test("finds nothing in an array whose buffer was transferred away", () => {
    const tokens = tokensTo(8);
    structuredClone(tokens, { transfer: [tokens.buffer] });
    expect(hashTokens(tokens, { blockSize: 4 }).local.length).toBe(0);
  });

  test("is not disturbed by another hash that an option's getter asks for", () => {
    const options = {
      blockSize: 16,
      get parent() {
        hashTokens(noise, { blockSize: 7, cacheSalt: "other", parent: 5n });
        return 77n;
      },
      get loraName() {
        hashText("ab".repeat(50_000), { parent: 6n });
        return "adapter-a";
      },
    };
    expect(hashTokens(tokensTo(64), options)).toEqual(
      hashTokens(tokensTo(64), { blockSize: 16, parent: 77n, loraName: "adapter-a" }),
    );
  });
});

describe("the hasher", () => {
  test("is one and the same for all", () => {
    const before = hasher();
    hashTokens(tokensTo(4), { blockSize: 4, loraName: "l" });
    expect(hasher()).toBe(before);
  });

  test("keeps to one page of memory, however long the input", () => {
    expect(hasher().memoryBytes).toBe(65_536);
    const tokens = new Uint32Array(10_000_000).fill(3);
    const { local, sequence } = hashTokens(tokens, { blockSize: 16 });
    expect(local.length).toBe(625_000);
    expect(local.at(-1)).toBe(local[0]);
    expect(new Set(sequence.subarray(0, 100_000)).size).toBe(100_000);
    hashText("é".repeat(1_000_000));
    expect(hasher().memoryBytes).toBe(65_536);
  });

  test("is replaced by another after a broken invariant, which names its place", () => {
    const broken = hasher();
    let panic: unknown;
    try {
      broken.blocks(2, 40_000, 0n, undefined); // behind the facade's back: more than the window holds
    } catch (thrown) {
      panic = thrown;
    }
    expect(panic).toBeInstanceOf(CorePanicError);
    expect((panic as CorePanicError).place).toMatch(/^assembly\/token-hash\.ts:\d+$/);
    expect(hasher()).not.toBe(broken);
    expect(hashTokens(tokensTo(4), { blockSize: 4 }).local[0]).toBe(14643705804678351452n);
    const heir = hasher();
    expect(() => broken.end(1)).toThrow(CorePanicError);
    expect(hasher()).toBe(heir);
  });
});

function joined(...parts: readonly TokenHashes[]): TokenHashes {
  return {
    local: BigUint64Array.from(parts.flatMap((part) => Array.from(part.local))),
    sequence: BigUint64Array.from(parts.flatMap((part) => Array.from(part.sequence))),
  };
}
