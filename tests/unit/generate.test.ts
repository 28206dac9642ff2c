import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { formatRow, type GenerateOptions, generateTrace, type MooncakeRow } from "../../src/sim/generate.js";
import { Heap } from "../../src/sim/heap.js";
import { Prng, zipf } from "../../src/sim/prng.js";
import { readTrace } from "../../src/sim/trace.js";

const generate = (options: Partial<GenerateOptions> = {}): MooncakeRow[] => [
  ...generateTrace({ requests: 3_000, seed: 7, ...options }),
];

const digest = (rows: readonly MooncakeRow[]): string =>
  createHash("sha256").update(rows.map(formatRow).join("")).digest("hex");

describe("a generated trace", () => {
  test("has the same bytes for the same seed, on every runtime", () => {
    expect(digest(generate())).toBe("545646296391174485358ef70b1f83b7a0fc48cf9ca6b0a203fcc2d7281cf6ae");
    expect(digest(generate())).toBe(digest(generate()));
    expect(digest(generate({ seed: 8 }))).not.toBe(digest(generate()));
  });

  test("is the start of a longer one", () => {
    expect(generate({ requests: 100 })).toEqual(generate().slice(0, 100));
  });

  test("is in order of arrival, at about the rate that was asked for", () => {
    for (const requestsPerSecond of [0.5, 4, 200]) {
      const times = generate({ requests: 20_000, requestsPerSecond }).map((row) => row.timestamp);
      expect(times).toEqual([...times].sort((left, right) => left - right));
      const seconds = (times.at(-1) ?? 0) / 1_000;
      const warmUpSeconds = 120; // the first conversations are alone with their first turns
      expect(20_000 / seconds / requestsPerSecond).toBeLessThan(1.1);
      expect(20_000 / (seconds - warmUpSeconds) / requestsPerSecond).not.toBeLessThan(0.9);
    }
  });

  test("names a block by itself and all before it", () => {
    const before = new Map<number, string>();
    for (const { hash_ids: ids } of generate()) {
      for (const [at, id] of ids.entries()) {
        const place = `${at} after ${ids[at - 1] ?? "nothing"}`;
        expect(before.get(id) ?? place).toBe(place);
        before.set(id, place);
      }
    }
    const all = [...before.keys()];
    expect(Math.max(...all)).toBe(all.length - 1); // ids are given out without gaps
  });

  test("has an id for every 512 tokens of each prompt, the last and partial ones included", () => {
    for (const row of generate()) {
      expect(row.hash_ids).toHaveLength(Math.ceil(row.input_length / 512));
      expect(row.output_length).toBeGreaterThanOrEqual(1);
    }
  });

  test("holds conversations: most prompts go on from an earlier one, and all start alike", () => {
    const seen = new Set<number>();
    let references = 0;
    for (const { hash_ids: ids } of generate({ requests: 10_000 })) {
      expect(ids[0]).toBe(0);
      references += ids.length;
      for (const id of ids) seen.add(id);
    }
    const reused = 1 - seen.size / references;
    expect(reused).toBeGreaterThan(0.6);
    expect(reused).toBeLessThan(0.9);
  });

  test("favours few system prompts", () => {
    const counts = new Map<number, number>();
    for (const { hash_ids: ids } of generate({ requests: 40_000, systemPrompts: 2 })) {
      if (ids.length > 8) counts.set(ids[1] as number, (counts.get(ids[1] as number) ?? 0) + 1);
    }
    const [first = 0, second = 0] = [...counts.values()].sort((left, right) => right - left);
    expect(first / second).toBeGreaterThan(1.4);
  });

  test("keeps prompts within 131,072 tokens", () => {
    const lengths = generate({ requests: 50_000 }).map((row) => row.input_length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(131_072);
  });

  test("is a trace that can be read", async () => {
    const rows = generate({ requests: 50 });
    const bytes = new TextEncoder().encode(rows.map(formatRow).join(""));
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    });
    const read: unknown[] = [];
    for await (const { timestampMs, sequenceHashes } of readTrace(stream)) {
      read.push([timestampMs, [...sequenceHashes].map(Number)]);
    }
    expect(read).toEqual(rows.map((row) => [row.timestamp, row.hash_ids]));
  });

  test.each([
    [{ requests: 0 }, "Expected requests to be a whole number from 1 to 100000000, got 0."],
    [{ systemPrompts: 1.5 }, "Expected systemPrompts to be a whole number from 1 to 100000, got 1.5."],
    [{ requestsPerSecond: 0 }, "Expected requestsPerSecond to be above 0 and at most 1000000, got 0."],
    [{ requestsPerSecond: Number.NaN }, "Expected requestsPerSecond to be above 0 and at most 1000000, got NaN."],
    [{ seed: 2 ** 53 }, `Expected a seed from 0 to 9007199254740991, got ${2 ** 53}.`],
  ])("is refused with %j", (options, message) => {
    expect(() => generate(options)).toThrow(expect.objectContaining({ code: "KVROUTE_OPTION", message }));
  });
});

describe("seeded chance", () => {
  test("gives the same numbers for the same seed, on every runtime", () => {
    const chance = new Prng(42);
    expect([chance.uint32(), chance.uint32(), chance.random(), chance.below(1000)]).toEqual([
      3893884377, 145076852, 0.7557707351759388, 503,
    ]);
  });

  test("depends on all 53 bits of the seed", () => {
    const firsts = Array.from({ length: 53 }, (_, bit) => new Prng(2 ** bit).uint32());
    expect(new Set([new Prng(0).uint32(), ...firsts]).size).toBe(54);
  });

  test("is uniform from 0 up to 1", () => {
    const chance = new Prng(1);
    const counts = new Array<number>(16).fill(0);
    for (let draw = 0; draw < 160_000; draw++) {
      const place = Math.floor(chance.random() * 16);
      counts[place] = (counts[place] as number) + 1;
    }
    for (const count of counts) expect(Math.abs(count / 10_000 - 1)).toBeLessThan(0.05);
  });

  test("is exponential with mean 1 and variance 1", () => {
    const chance = new Prng(1);
    const draws = Array.from({ length: 200_000 }, () => chance.exponential());
    const mean = draws.reduce((total, draw) => total + draw, 0) / draws.length;
    const variance = draws.reduce((total, draw) => total + (draw - mean) ** 2, 0) / draws.length;
    expect(mean).toBeCloseTo(1, 1);
    expect(variance).toBeCloseTo(1, 1);
    expect(draws.filter((draw) => draw > 3).length / draws.length).toBeCloseTo(Math.exp(-3), 2);
  });

  test("follows Zipf's law: rank k comes 1 / (k + 1) times as often as rank 0", () => {
    const chance = new Prng(1);
    const pick = zipf(5);
    const counts = [0, 0, 0, 0, 0];
    for (let draw = 0; draw < 200_000; draw++) {
      const rank = pick(chance);
      counts[rank] = (counts[rank] as number) + 1;
    }
    const top = counts[0] as number;
    for (const [rank, count] of counts.entries()) expect(Math.abs((count * (rank + 1)) / top - 1)).toBeLessThan(0.05);
  });
});

test("a heap gives back what was put in, in order", () => {
  const chance = new Prng(3);
  const heap = new Heap<number>((left, right) => left < right);
  expect(heap.pop()).toBeUndefined();
  const items = Array.from({ length: 500 }, () => chance.below(1_000_000));
  for (const item of items) heap.push(item);
  const sorted = [...items].sort((left, right) => left - right);
  expect(items.map(() => heap.pop())).toEqual(sorted);
  expect(heap.first).toBeUndefined();
});
