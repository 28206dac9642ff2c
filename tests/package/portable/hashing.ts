import vectors from "kvroute-vectors";
import { same } from "../../support/agree.js";
import { type Case, linesOf, throwsCode } from "./parts.js";

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
  readonly local: readonly string[];
  readonly sequence: readonly string[];
}

export const hashingCases: readonly Case[] = [
  {
    name: "xxh3 is what the reference library made",
    run({ kvroute }) {
      const lines = linesOf(vectors["token-hash/xxh3.jsonl"] ?? "").map((line) => JSON.parse(line) as Hashed);
      same("there are vectors", true, lines.length >= 100);
      for (const { n, h } of lines) {
        const input = Uint8Array.from({ length: n }, (_, i) => i * i * 31 + i * 131 + 146); // the formula of the header
        for (const [seed, hash] of Object.entries(h))
          same(`${n} bytes`, hash, String(kvroute.xxh3(input, BigInt(seed))));
      }
    },
  },
  {
    name: "token hashes are what was recorded of the original",
    run({ kvroute }) {
      const lines = linesOf(vectors["token-hash/sequences.jsonl"] ?? "").map((line) => JSON.parse(line) as Sequence);
      same("there are vectors", true, lines.length >= 50);
      for (const { blockSize, lora, salt, tokens, local, sequence } of lines) {
        const names = { loraName: lora ?? undefined, cacheSalt: salt ?? undefined };
        const hashes = kvroute.hashTokens(Uint32Array.from(tokens), { blockSize, ...names });
        same("local", local, Array.from(hashes.local, String));
        same("sequence", sequence, Array.from(hashes.sequence, String));
      }
    },
  },
  {
    name: "a text is hashed as its bytes are, however long",
    run({ kvroute }) {
      const text = "Zoë drew a 🦊; ".repeat(10_000);
      const bytes = new TextEncoder().encode(text);
      const options = { blockBytes: 256, loraName: "fox" };
      const [ofText, ofBytes] = [kvroute.hashText(text, options), kvroute.hashText(bytes, options)];
      same("blocks", Math.floor(bytes.length / 256), ofText.sequence.length);
      same("last hash", ofBytes.sequence.at(-1), ofText.sequence.at(-1));
    },
  },
  {
    name: "a prefix index says who holds how much, and keeps to its limit",
    run({ kvroute }) {
      const index = new kvroute.PrefixIndex({ maxEntries: 100 });
      const { sequence } = kvroute.hashTokens(
        Uint32Array.from({ length: 64 }, (_, at) => at),
        { blockSize: 16 },
      );
      const [a, b] = [
        { workerId: "a", dpRank: 0 },
        { workerId: 2n ** 64n - 1n, dpRank: 1 },
      ] as const;
      index.store(a, sequence);
      index.store(b, sequence.subarray(0, 2));
      const overlap = [
        { worker: a, blocks: 4 },
        { worker: b, blocks: 2 },
      ];
      same("overlap", overlap, index.overlap(sequence));
      index.remove(a, sequence.subarray(0, 1));
      same("overlap without the root", [overlap[1]], index.overlap(sequence));
      index.store(
        b,
        BigUint64Array.from({ length: 150 }, (_, at) => BigInt(at)),
        { nowMs: 1 },
      );
      same("entries", true, index.size.entries <= 100);
      throwsCode("KVROUTE_ARGUMENT_RANGE", () => index.store({ workerId: 1.5, dpRank: 0 }, sequence));
    },
  },
];
