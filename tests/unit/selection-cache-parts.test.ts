import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgeOrder, NOT_LATE } from "../../src/selection/cache/age-order.js";
import { IdTable } from "../../src/selection/cache/id-table.js";
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

  test("cuts the link from what has left to what is newer", () => {
    const order = new AgeOrder<Probe>();
    const probes = [0, 1, 2].map((at) => new Probe(at, at));
    for (const probe of probes) order.add(probe);
    for (const probe of [1, 0, 2].map((at) => probes[at] as Probe)) {
      order.delete(probe);
      expect(probe.newer).toBeNull();
    }
  });
});

interface Named {
  readonly id: string;
  readonly n: number;
  idHash: number;
  chained: Named | null;
}

const named = (id: string, n: number): Named => ({ id, n, idHash: 0, chained: null });

/** A table of so many ids. */
function tableOf(count: number, idOf: (n: number) => string): IdTable<Named> {
  const table = new IdTable<Named>();
  for (let n = 0; n < count; n++) table.put(named(idOf(n), n));
  return table;
}

describe("the table of ids", () => {
  test.each([
    ["that count up", (n: number) => `request-${n}`],
    ["that all end alike", (n: number) => `${n}-completion-0`],
    ["that are short", (n: number) => n.toString(36)],
    ["beyond ASCII", (n: number) => `é${n}😀`],
  ])("is a map while it grows and shrinks, with ids %s", (_, idOf) => {
    const count = 5_000;
    const table = tableOf(count, idOf);
    expect(table.size).toBe(count);
    for (let n = 0; n < count; n++) expect(table.put(named(idOf(n), -n))?.n).toBe(n);
    expect(table.size).toBe(count);
    for (let n = 0; n < count; n += 2) table.delete(table.get(idOf(n)) as Named);
    expect(table.size).toBe(count / 2);
    for (let n = 0; n < count; n++) expect(table.get(idOf(n))?.n).toBe(n % 2 === 0 ? undefined : -n);
    for (let n = 1; n < count; n += 2) table.delete(table.get(idOf(n)) as Named);
    const { buckets, overflow } = table.inspect();
    expect([table.size, Math.max(...buckets), overflow]).toEqual([0, 0, 0]);
  });

  test("agrees with a map under random calls on ids that meet in one bucket", () => {
    const calls = fc.array(fc.tuple(fc.nat(24), fc.boolean()), { maxLength: 120, size: "max" });
    const property = fc.property(calls, (list) => {
      const table = new IdTable<Named>();
      const model = new Map<string, Named>();
      for (const [n, [which, isDeleted]] of list.entries()) {
        const id = `${which}`.padEnd(10, "-"); // of one length, and alike in the last eight characters
        const there = model.get(id);
        if (isDeleted) {
          if (there !== undefined) table.delete(there);
          model.delete(id);
        } else {
          const entry = named(id, n);
          expect(table.put(entry)).toBe(there);
          model.set(id, entry);
        }
        expect(table.size).toBe(model.size);
        for (let other = 0; other <= 24; other++) {
          const key = `${other}`.padEnd(10, "-");
          expect(table.get(key)).toBe(model.get(key));
        }
      }
    });
    fc.assert(property, { numRuns: scaled(60) });
  });

  test("has as many buckets as ids, up to the next power of two", () => {
    const idOf = (n: number) => `request-${n}`;
    const bucketsOf = (count: number) => tableOf(count, idOf).inspect().buckets.length;
    expect([0, 8, 9, 4_096, 4_097].map(bucketsOf)).toEqual([8, 8, 16, 4_096, 8_192]);
  });

  test("gives half of its buckets back when fewer than an eighth are used, down to eight", () => {
    const table = tableOf(4_096, (n) => `request-${n}`);
    const bucketsAt: Record<number, number> = {};
    for (let n = 4_095; n >= 0; n--) {
      table.delete(table.get(`request-${n}`) as Named);
      bucketsAt[n] = table.inspect().buckets.length;
    }
    expect([512, 511, 256, 255, 2, 1, 0].map((left) => bucketsAt[left])).toEqual([
      4_096, 2_048, 2_048, 1_024, 16, 8, 8,
    ]);
  });

  test.each([
    ["count up", (n: number) => `request-${n}`],
    ["count up before a short suffix", (n: number) => `cmpl-${n}-0`],
    ["are hexadecimal", (n: number) => `chatcmpl-${(Math.imul(n, 0x9e3779b1) >>> 0).toString(16)}`],
    ["are seven apart", (n: number) => `${1e15 + 7 * n}`],
  ])("spreads ids that %s like a random hash, or better", (_, idOf) => {
    const { buckets, overflow } = tableOf(4_096, idOf).inspect();
    expect(buckets.filter((length) => length === 0).length).toBeLessThan(4_096 * 0.4); // 1 in e of a random hash
    expect(overflow).toBe(0);
  });

  test("keeps eight of the ids that end alike in a bucket, and the others in a map", () => {
    const { buckets, overflow } = tableOf(2_000, (n) => `${1e6 + n}-complete`).inspect();
    expect([buckets.filter((length) => length > 0), overflow]).toEqual([[8], 1_992]);
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
