import { readFileSync } from "node:fs";
import { dirname, join as joinPath } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Histogram } from "../../src/sim/engine/histogram.js";
import { Recent } from "../../src/testing/recent.js";
import { bytesOfToken, encodeMessage, encodeText, join, openMessage, wordToken } from "../../src/testing/tokenizer.js";

const textOf = (tokens: Iterable<number>) =>
  new TextDecoder().decode(Uint8Array.from([...tokens].flatMap((token) => [...bytesOfToken(token)])));

describe("the tokenizer", () => {
  test("gives every text back that holds no zero", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 40 }).filter((it) => !it.includes("\0"));
    fc.assert(fc.property(text, (it) => textOf(encodeText(it)) === it));
  });

  test("begins every message at a token of its own, so that turns of a conversation share all but what is new", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 20 });
    fc.assert(
      fc.property(text, text, text, (question, answer, next) => {
        const first = join([encodeMessage("user", [question]), openMessage("assistant"), encodeText(answer)]);
        const turns = [encodeMessage("user", [question]), encodeMessage("assistant", [answer])];
        const second = join([...turns, encodeMessage("user", [next]), openMessage("assistant")]);
        expect(second.subarray(0, first.length)).toEqual(first);
      }),
    );
  });

  test("no text looks like the border of messages", () => {
    const border = openMessage("user")[0] as number;
    expect(textOf([border])).toBe("");
    fc.assert(fc.property(fc.string({ unit: "binary" }), (it) => !encodeText(it).includes(border)));
  });

  test("makes words up that are one token each", () => {
    const words = Array.from({ length: 1_000 }, (_, index) => wordToken(0x1234_5678_9abc_def0n, index));
    expect(textOf(words)).toMatch(/^( [b-z][aeiou][b-z]){1000}$/);
    expect(new Set(words).size).toBeGreaterThan(500);
    expect([...encodeText(textOf(words))]).toEqual(words);
  });
});

test("Recent keeps the last ones in order", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5 }), fc.array(fc.integer(), { maxLength: 20 }), (max, items) => {
      const recent = new Recent<number>(max);
      for (const [at, item] of items.entries()) {
        recent.add(item);
        expect(recent.list()).toEqual(items.slice(Math.max(0, at + 1 - max), at + 1));
      }
      if (max === 0) expect(recent.list()).toEqual([]);
    }),
  );
});

test("a histogram counts a value for the first bound that it does not exceed", () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0, 1, 1.5, 2, 3]) histogram.observe(value);
  expect(histogram).toMatchObject({ counts: [2, 2, 1], sum: 7.5, count: 5 });
});

test("the built kvroute/testing reaches nothing of Node", () => {
  const dist = fileURLToPath(new URL("../../dist", import.meta.url));
  const seen = new Set<string>();
  const outside = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, target = ""] of readFileSync(file, "utf8").matchAll(
      /^(?:import|export)\b[^"'\n]*["']([^"']+)["'];?$/gm,
    )) {
      if (target.startsWith(".")) visit(joinPath(dirname(file), target));
      else outside.add(target);
    }
  };
  visit(joinPath(dist, "testing.js"));
  expect(seen.size).toBeGreaterThan(1);
  expect([...outside].sort()).toEqual(["#core", "@msgpack/msgpack"]);
});
