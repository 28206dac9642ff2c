import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasher } from "../../../src/core/hasher.js";
import { hashText, hashTokens } from "../../../src/core/token-hash.js";
import { scaled } from "../../support/scale.js";
import { expectSame, referenceHashes } from "./token-hash.reference.js";

const WINDOW = hasher().window.length;
const encode = (text: string) => new TextEncoder().encode(text);

/** Characters of one to four bytes, and both halves of a surrogate pair by themselves. */
const CHARACTERS = ["a", "é", "租", "😀", "\ud83d", "\ude00"];
const BLOCK_BYTES = [4, 5, 7, 64, 255, 256, 1_000, 4_097, 10_923, 16_383, 16_384];

describe("hashText", () => {
  test("has blocks of 256 bytes where nothing else is asked for, and the rule of hashTokens", async () => {
    const text = "to be, or not to be: ".repeat(100);
    expect(hashText(text)).toEqual(await referenceHashes(encode(text), 256));
    expect(hashText(text, { blockBytes: undefined })).toEqual(hashText(text, { blockBytes: 256 }));
    const tokens = Uint32Array.from({ length: 1_000 }, (_, i) => i * 77);
    expect(hashText(new Uint8Array(tokens.buffer), { blockBytes: 64, cacheSalt: "s", parent: 3n })).toEqual(
      hashTokens(tokens, { blockSize: 16, cacheSalt: "s", parent: 3n }),
    );
  });

  test("of a text are those of its UTF-8 bytes", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 2_000 }),
      fc.string({ unit: fc.constantFrom(...CHARACTERS) }),
    );
    const law = fc.property(
      text,
      fc.integer({ min: 4, max: 300 }),
      fc.option(fc.bigInt(0n, 9n)),
      (text, blockBytes, parent) => {
        const options = { blockBytes, parent: parent ?? undefined, loraName: "l" };
        expectSame(hashText(text, options), hashText(encode(text), options));
      },
    );
    fc.assert(law, { numRuns: scaled(500) });
  });

  test("of no text, and of less than a block, are none", () => {
    for (const text of ["", "abc", new Uint8Array(0), Uint8Array.of(1, 2, 3)]) {
      expect(hashText(text, { blockBytes: 4 })).toEqual({
        local: new BigUint64Array(0),
        sequence: new BigUint64Array(0),
      });
    }
  });

  // A character that does not fit the window any more waits for the next round, and none is torn at the cut of a round.
  test.each(CHARACTERS)("lose nothing at the seams of the window, with %j there", (character) => {
    for (const blockBytes of BLOCK_BYTES) {
      for (let shift = 0; shift < 5; shift++) {
        const text = `${"x".repeat(shift)}${character.repeat(WINDOW)}`;
        const options = { blockBytes, parent: 1n };
        expectSame(hashText(text, options), hashText(encode(text), options));
      }
    }
  });

  test("lose nothing where characters of all lengths meet the seams", () => {
    const long = fc.string({ unit: fc.constantFrom(...CHARACTERS), minLength: 500, maxLength: 1_000 });
    const law = fc.property(long, fc.nat({ max: 8 }), fc.constantFrom(...BLOCK_BYTES), (piece, shift, blockBytes) => {
      const text = "-".repeat(shift) + piece.repeat(Math.ceil((2.5 * WINDOW) / piece.length));
      expectSame(hashText(text, { blockBytes }), hashText(encode(text), { blockBytes }));
    });
    fc.assert(law, { numRuns: scaled(60) });
  });
});
