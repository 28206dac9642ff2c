import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hashText, xxh3 } from "../../src/core/token-hash.js";
import { CanonicalText, hashWholeText, Mark, MEDIA_BYTES, TOKEN_MAX } from "../../src/gateway/prompt/canonical-text.js";
import { bytesOf } from "./prompt-stage.js";

type Step =
  | { readonly kind: "mark" }
  | { readonly kind: "opening" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "media"; readonly text: string }
  | { readonly kind: "tokens"; readonly tokens: readonly number[] };

/** Writes all into one list of bytes, and hashes that. */
class NaiveText {
  readonly bytes: number[] = [];
  opening: number | undefined;

  take(step: Step): void {
    if (step.kind === "mark") this.bytes.push(0xff, Mark.part);
    else if (step.kind === "opening") this.opening ??= this.bytes.length;
    else if (step.kind === "text") for (const byte of bytesOf(step.text)) this.bytes.push(byte);
    else if (step.kind === "tokens") this.#takeTokens(step.tokens);
    else this.#takeMedia(step.text);
  }

  #takeTokens(tokens: readonly number[]): void {
    this.bytes.push(0xff, Mark.tokens);
    const bytes = new Uint8Array(Uint32Array.from([...tokens, TOKEN_MAX + 1]).buffer);
    for (const byte of bytes) this.bytes.push(byte);
  }

  #takeMedia(content: string): void {
    this.bytes.push(0xff, Mark.hash);
    const word = new Uint8Array(BigUint64Array.of(hashWholeText(content)).buffer);
    for (let i = 0; i < MEDIA_BYTES / 8; i++) this.bytes.push(...word);
  }

  finish(blockBytes: number, root: bigint) {
    const all = Uint8Array.from(this.bytes);
    const { sequence } = hashText(all, { blockBytes, parent: root });
    const end = this.opening ?? all.length;
    const blocks = Math.floor(end / blockBytes);
    const before = sequence[blocks - 1] ?? root;
    return { sequence, opening: xxh3(all.subarray(blocks * blockBytes, end), before) };
  }
}

function write(text: CanonicalText, step: Step): void {
  if (step.kind === "mark") text.mark(Mark.part);
  else if (step.kind === "opening") text.endOpening();
  else if (step.kind === "text") text.text(step.text);
  else if (step.kind === "tokens") text.tokens(step.tokens);
  else text.media(step.text);
}

const long = fc
  .tuple(fc.constantFrom("abc ", "é", "语", "😀", "a😀é", "\ud800x"), fc.nat({ max: 40_000 }))
  .map(([unit, count]) => unit.repeat(count));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constantFrom<Step>({ kind: "mark" }, { kind: "opening" }),
  fc.record({ kind: fc.constant("text" as const), text: fc.string({ unit: "binary", maxLength: 60 }) }),
  fc.record({ kind: fc.constant("text" as const), text: long }),
  fc.record({ kind: fc.constant("media" as const), text: fc.string() }),
  fc.record({
    kind: fc.constant("tokens" as const),
    tokens: fc.oneof(
      fc.array(fc.nat({ max: TOKEN_MAX })),
      fc.nat({ max: 40_000 }).map((count) => Array.from({ length: count }, (_, i) => i)),
    ),
  }),
);

describe("a canonical text that is hashed as it is written", () => {
  test("has the hashes of the text as a whole", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.constantFrom(12, 64, 100, 256, 16_384),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        (steps, blockBytes, root) => {
          const text = new CanonicalText({ blockBytes, root, maxBytes: 2 ** 30 });
          const naive = new NaiveText();
          for (const each of steps) {
            write(text, each);
            naive.take(each);
            expect(text.length).toBe(naive.bytes.length);
          }
          expect(text.isFull).toBe(false);
          expect(text.finish()).toEqual(naive.finish(blockBytes, root));
        },
      ),
      { numRuns: 40 },
    );
  });

  test("ends at its limit, with the hashes of what stands before it", () => {
    const steps = fc.array(step, { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 200_000 }), (all, maxBytes) => {
        const text = new CanonicalText({ blockBytes: 64, root: 7n, maxBytes });
        const naive = new NaiveText();
        for (const each of all) {
          write(text, each);
          naive.take(each);
        }
        expect(text.length).toBe(Math.min(naive.bytes.length, maxBytes));
        expect(text.isFull).toBe(naive.bytes.length >= maxBytes);
        const { sequence } = naive.finish(64, 7n);
        expect(text.finish().sequence).toEqual(sequence.slice(0, Math.floor(maxBytes / 64)));
      }),
      { numRuns: 40 },
    );
  });

  test("is its own, whatever others are begun, given up or finished meanwhile", () => {
    const made = () => new CanonicalText({ blockBytes: 16, root: 1n, maxBytes: 2 ** 30 });
    const finish = (texts: readonly string[]) => {
      const text = made();
      for (const each of texts) text.text(each);
      return text.finish();
    };
    const [left, right] = [made(), made()];
    left.text("the left one ".repeat(4));
    right.text("the right one ".repeat(4));
    made().text("given up ".repeat(8));
    const other = finish(["another ".repeat(8)]);
    left.text("ends");
    expect(left.finish()).toEqual(finish(["the left one ".repeat(4), "ends"]));
    right.text("ends as well");
    expect(right.finish()).toEqual(finish(["the right one ".repeat(4), "ends as well"]));
    expect(finish(["another ".repeat(8)])).toEqual(other);
  });

  test("takes a character whole at every place at the end of a piece", () => {
    for (let pad = 65_520; pad <= 65_540; pad++) {
      for (const character of ["a", "é", "语", "😀", "\udc00"]) {
        const text = new CanonicalText({ blockBytes: 16, root: 1n, maxBytes: 2 ** 30 });
        const naive = new NaiveText();
        for (const each of ["x".repeat(pad), character, "y".repeat(40)]) {
          text.text(each);
          naive.take({ kind: "text", text: each });
        }
        const [{ sequence, opening }, expected] = [text.finish(), naive.finish(16, 1n)];
        expect(sequence.length).toBe(expected.sequence.length);
        expect(sequence.at(-1)).toBe(expected.sequence.at(-1)); // which holds all before it
        expect(opening).toBe(expected.opening);
      }
    }
  });
});

describe("the hash of a whole text", () => {
  test("depends on every part of it and on the seed", () => {
    const content = "QUJD".repeat(10_000);
    const hashes = [0, 8_191, 8_192, 20_000, 39_999].map((at) =>
      hashWholeText(`${content.slice(0, at)}-${content.slice(at + 1)}`),
    );
    expect(new Set([...hashes, hashWholeText(content), hashWholeText(content, 1n), hashWholeText("")]).size).toBe(8);
  });
});
