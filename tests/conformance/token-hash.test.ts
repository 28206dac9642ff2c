import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { hashText, hashTokens, seedOf, xxh3 } from "../../src/core/token-hash.js";

interface Hashed {
  readonly n: number;
  /** Seeds, and the hash under each. */
  readonly h: Readonly<Record<string, string>>;
}

interface Sequence {
  readonly blockSize: number;
  readonly lora: string | null;
  readonly salt: string | null;
  readonly tokens: readonly number[];
  readonly seed: string;
  readonly local: readonly string[];
  readonly sequence: readonly string[];
}

const folder = new URL("./vectors/token-hash/", import.meta.url);

/** The lines of a file behind its header. */
function read<Line>(file: string, format: string): Line[] {
  const text = gunzipSync(readFileSync(new URL(file, folder))).toString("utf8");
  const [header, ...lines] = text.split("\n").filter((line) => line !== "");
  expect(JSON.parse(header as string).format).toBe(format);
  return lines.map((line) => JSON.parse(line) as Line);
}

describe("XXH3 with a seed", () => {
  const lines = read<Hashed>("xxh3.jsonl.gz", "xxh3-64/1");
  const longest = Math.max(...lines.map((line) => line.n));
  const bytes = Uint8Array.from({ length: longest }, (_, i) => i * i * 31 + i * 131 + 146); // the formula of the header

  test("is what the reference library made of every length up to 1,100 and of some longer ones", () => {
    expect(lines.length).toBeGreaterThan(1_100);
    for (const { n, h } of lines) {
      const input = bytes.subarray(0, n);
      const own = Object.fromEntries(Object.keys(h).map((seed) => [seed, String(xxh3(input, BigInt(seed)))]));
      expect({ n, h: own }).toEqual({ n, h });
    }
  });
});

describe("hashTokens", () => {
  const lines = read<Sequence>("sequences.jsonl.gz", "token-hash/1");

  test("the vectors are there", () => {
    expect(lines.length).toBeGreaterThan(100);
  });

  test.each(lines.map((line, index) => [index + 2, line] as const))("line %i comes out as recorded", (_, line) => {
    const { blockSize, tokens, ...expected } = line;
    const names = { loraName: line.lora ?? undefined, cacheSalt: line.salt ?? undefined };
    const { local, sequence } = hashTokens(Uint32Array.from(tokens), { blockSize, ...names });
    const seed = String(seedOf(names));
    expect({
      lora: line.lora,
      salt: line.salt,
      seed,
      local: Array.from(local, String),
      sequence: Array.from(sequence, String),
    }).toEqual(expected);

    const bytes = new Uint8Array(Uint32Array.from(tokens).buffer);
    expect(hashText(bytes, { blockBytes: 4 * blockSize, ...names })).toEqual({ local, sequence });
  });
});
