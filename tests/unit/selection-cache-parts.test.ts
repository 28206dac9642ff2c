import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgeOrder, NOT_LATE } from "../../src/selection/cache/age-order.js";
import { ShardedMap } from "../../src/selection/cache/sharded-map.js";
import { utf8Length } from "../../src/selection/cache/utf8.js";
import { scaled } from "../support/scale.js";

/** An entry that counts how often its anchor is read: a deterministic measure of the work of an order. */
class Probe {
  static reads = 0;
  older: Probe | null = null;
  newer: Probe | null = null;
  lateIndex = NOT_LATE;

  constructor(
    readonly anchor: number,
    readonly generation: number,
  ) {}

  get insertedAtMs(): number {
    Probe.reads++;
    return this.anchor;
  }
}

/** Adds entries with these anchors and then takes the oldest out until none is left. Returns reads of anchors per entry. */
function drain(anchors: readonly number[]): number {
  Probe.reads = 0;
  const order = new AgeOrder<Probe>();
  for (const [generation, anchor] of anchors.entries()) order.add(new Probe(anchor, generation));
  const drained: Probe[] = [];
  for (let { oldest } = order; oldest !== null; { oldest } = order) {
    drained.push(oldest);
    order.delete(oldest);
  }
  const { reads } = Probe;
  const generations = anchors.map((_, generation) => generation);
  generations.sort((a, b) => (anchors[a] as number) - (anchors[b] as number) || a - b);
  expect(drained.map(({ generation }) => generation)).toEqual(generations);
  return reads / anchors.length;
}

describe("the age order", () => {
  const entries = 4_096;

  test("compares once for each entry when they come in order of time, and not at all when they go", () => {
    expect(drain(Array.from({ length: entries }, (_, at) => at >> 1))).toBeLessThanOrEqual(2);
  });

  // A comparison reads two to four anchors; a heap of 4,096 is 12 levels deep, with two comparisons a level on the way down.
  test.each([
    ["backwards", (at: number) => -at],
    ["backwards behind one far in the future", (at: number) => (at === 0 ? 1e15 : -at)],
    ["forwards behind one far in the future", (at: number) => (at === 0 ? 1e15 : at)],
    ["from both ends", (at: number) => (at % 2 === 0 ? at : -at)],
    ["all over the place", (at: number) => (at * 1_597) % entries],
    ["in a saw", (at: number) => (at % 64) * 64 + (at >> 6)],
  ])("takes a logarithm of comparisons when they come %s", (_, anchorAt) => {
    expect(drain(Array.from({ length: entries }, (_, at) => anchorAt(at)))).toBeLessThan(4 * (2 * 12 + 12));
  });

  test("keeps its order when entries leave from anywhere", () => {
    const visits = fc.array(fc.record({ anchor: fc.nat(30), leave: fc.nat() }), { maxLength: 100, size: "max" });
    const property = fc.property(visits, (list) => {
      const order = new AgeOrder<Probe>();
      const model: Probe[] = [];
      for (const [generation, { anchor, leave }] of list.entries()) {
        const probe = new Probe(anchor, generation);
        order.add(probe);
        model.push(probe);
        if (leave % 3 === 0) order.delete(model.splice(leave % model.length, 1)[0] as Probe);
        model.sort((a, b) => a.anchor - b.anchor || a.generation - b.generation);
        expect([order.oldest?.generation, order.size]).toEqual([model[0]?.generation, model.length]);
      }
    });
    fc.assert(property, { numRuns: scaled(300) });
  });

  test("cuts the links of what has left", () => {
    const order = new AgeOrder<Probe>();
    const probes = [0, 1, 2].map((at) => new Probe(at, at));
    for (const probe of probes) order.add(probe);
    for (const probe of [1, 0, 2].map((at) => probes[at] as Probe)) {
      order.delete(probe);
      expect([probe.older, probe.newer]).toEqual([null, null]);
    }
  });
});

describe("the sharded map", () => {
  test.each([
    ["that count up", (n: number) => `request-${n}`],
    ["that all end alike", (n: number) => `${n}-completion-0`],
    ["that are short", (n: number) => n.toString(36)],
    ["beyond ASCII", (n: number) => `é${n}😀`],
  ])("is a map while it grows and shrinks, with ids %s", (_, idOf) => {
    const map = new ShardedMap<number>();
    const count = 5_000;
    for (let n = 0; n < count; n++) expect(map.put(idOf(n), n)).toBeUndefined();
    expect(map.size).toBe(count);
    for (let n = 0; n < count; n++) expect(map.put(idOf(n), -n)).toBe(n);
    expect(map.size).toBe(count);
    for (let n = 0; n < count; n += 2) map.delete(idOf(n));
    expect(map.size).toBe(count / 2);
    for (let n = 0; n < count; n++) expect(map.get(idOf(n))).toBe(n % 2 === 0 ? undefined : -n);
  });

  /** The sizes of the shards with so many ids. */
  function sizes(count: number, idOf: (n: number) => string): number[] {
    const map = new ShardedMap<number>();
    for (let n = 0; n < count; n++) map.put(idOf(n), n);
    return map.inspect();
  }

  test("keeps 512 ids together, and twice as many shards from then on", () => {
    const idOf = (n: number) => `request-${n}`;
    expect(sizes(512, idOf)).toEqual([512]);
    expect(sizes(513, idOf)).toHaveLength(2);
    expect(sizes(1_025, idOf)).toHaveLength(4);
  });

  test.each([
    ["count up", (n: number) => `request-${n}`],
    ["count up before a short suffix", (n: number) => `cmpl-${n}-0`],
    ["are hexadecimal", (n: number) => `chatcmpl-${(Math.imul(n, 0x9e3779b1) >>> 0).toString(16)}`],
    ["are seven apart", (n: number) => `${1e15 + 7 * n}`],
  ])("fills its shards alike with ids that %s", (_, idOf) => {
    expect(Math.max(...sizes(8_192, idOf))).toBeLessThan(1_024); // twice the mean
  });

  test("reads eight characters of an id, however long: ids that end alike share a shard", () => {
    const idOf = (n: number) => `${n}-complete`;
    expect(sizes(2_000, idOf).filter((size) => size > 0)).toEqual([2_000]);
  });
});

describe("the length in UTF-8", () => {
  const lengthOf = (text: string) => new TextEncoder().encode(text).length;
  const borders = [0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff];

  test("is what an encoder makes, at every border of the encoding and with surrogates in any order", () => {
    for (const first of borders) {
      for (const second of borders) {
        for (const third of borders) {
          const text = String.fromCharCode(first, second, third);
          expect(utf8Length(text)).toBe(lengthOf(text));
        }
      }
    }
  });

  test("is what an encoder makes of any text", () => {
    const units = fc.array(fc.oneof(fc.nat(0xffff), fc.constantFrom(...borders)), { maxLength: 60 });
    const property = fc.property(units, (codes) => {
      const text = String.fromCharCode(...codes);
      expect(utf8Length(text)).toBe(lengthOf(text));
    });
    fc.assert(property, { numRuns: scaled(2_000) });
  });
});
