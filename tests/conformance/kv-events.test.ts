import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { KvEventError } from "../../src/errors.js";
import { decodeKvEvents, type KvEvent } from "../../src/selection/events.js";

/** One payload and what a decoder must make of it. */
interface Line {
  readonly name: string;
  readonly hex: string;
  readonly error?: true;
  readonly expect?: {
    readonly ts: number;
    readonly dpRank: number | null;
    readonly events: object[];
    readonly ignored?: number;
  };
}

const file = new URL("vectors/kv-events/payloads.jsonl", import.meta.url);
const lines = readFileSync(file, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Line);

const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));
const asWritten = (hash: bigint | string) => String(hash);

/** An event as the vectors write it: hashes as text, tokens as a list, and only the fields that they name. */
function written(event: KvEvent): object {
  if (event.type === "cleared") return { type: "cleared" };
  const { type, blockHashes, medium, groupIdx } = event;
  const common = { type, blockHashes: blockHashes.map(asWritten), medium, groupIdx };
  if (event.type === "removed") return common;
  const { parentBlockHash: parent, tokenIds, blockSize, loraId, loraName, specKind, slidingWindow } = event;
  const parentBlockHash = parent === null ? null : asWritten(parent);
  return { ...common, parentBlockHash, tokenIds: [...tokenIds], blockSize, loraId, loraName, specKind, slidingWindow };
}

describe("payloads as engines publish them", () => {
  test("there are some of both kinds", () => {
    expect(lines.filter((line) => line.error).length).toBeGreaterThan(15);
    expect(lines.filter((line) => line.expect).length).toBeGreaterThan(20);
  });

  for (const { name, hex, expect: expected } of lines) {
    test(`${name}: ${expected ? "is decoded" : "is refused"}`, () => {
      if (expected === undefined) {
        expect(() => decodeKvEvents(bytesOf(hex))).toThrow(KvEventError);
        return;
      }
      const { events, ...batch } = decodeKvEvents(bytesOf(hex));
      expect({ ...batch, events: events.map(written) }).toEqual({ ignored: 0, ...expected });
    });
  }

  test("every payload is refused wherever it is cut off, and with a byte more", () => {
    for (const { hex, expect: expected } of lines) {
      if (expected === undefined) continue;
      const bytes = bytesOf(hex);
      for (let end = 0; end < bytes.length; end++) {
        expect(() => decodeKvEvents(bytes.subarray(0, end))).toThrow(KvEventError);
      }
      expect(() => decodeKvEvents(Uint8Array.of(...bytes, 0))).toThrow(KvEventError);
    }
  });

  test("a payload inside a larger buffer is read within its bounds", () => {
    const line = lines.find((line) => line.expect !== undefined) as Line;
    const inner = bytesOf(line.hex);
    const outer = Uint8Array.of(0xc1, ...inner, 0xc1);
    expect(decodeKvEvents(outer.subarray(1, -1))).toEqual(decodeKvEvents(inner));
  });
});
