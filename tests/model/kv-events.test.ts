import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import type { HashForm, Order, Prompt } from "./kv-event-engine.js";
import { RealIndex } from "./kv-event-index.js";
import { type Kinship, Network, type Setting, type Step } from "./kv-event-network.js";

const engine = fc.constantFrom<0 | 1>(0, 1);
const form = fc.constantFrom<HashForm>("unsigned", "signed", "mixed", "bytes");
const order = fc.constantFrom<Order>("in order", "backwards");
const setting: fc.Arbitrary<Setting> = fc.record({
  kinship: fc.constantFrom<Kinship>("ranks", "workers"),
  forms: fc.tuple(form, form),
  orders: fc.tuple(order, order),
});

// Few tokens, adapters, salts and images, so that prompts share prefixes and differ in every way that they can.
const prompt: fc.Arbitrary<Prompt> = fc.record(
  {
    tokens: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 2, maxLength: 9 }),
    loraName: fc.constantFrom("a", "b"),
    cacheSalt: fc.constantFrom("a", "s"),
    image: fc.record({ block: fc.nat(3), name: fc.constantFrom("cat", "dog") }),
  },
  { requiredKeys: ["tokens"] },
);
const texts = fc.sample(prompt, { numRuns: 300, seed: 1 }).filter(({ image }) => image === undefined);

type Doing = Step["do"];
const steps = (...also: readonly Doing[]): fc.Arbitrary<Step[]> => {
  const fate = fc.constantFrom("arrives", "is lost", "is late", "arrives twice");
  const all: Record<Doing, { weight: number; arbitrary: fc.Arbitrary<Step> }> = {
    admit: { weight: 6, arbitrary: fc.record({ engine, do: fc.constant("admit"), prompt }) },
    evict: { weight: 2, arbitrary: fc.record({ engine, do: fc.constant("evict"), from: fc.nat(9), count: fc.nat(3) }) },
    clear: { weight: 1, arbitrary: fc.record({ engine, do: fc.constant("clear") }) },
    "remove unheld": { weight: 1, arbitrary: fc.record({ engine, do: fc.constant("remove unheld"), prompt }) },
    restart: {
      weight: 1,
      arbitrary: fc.record({ engine, do: fc.constant("restart"), lost: fc.nat(3), stale: fc.nat(4) }),
    },
    reset: { weight: 1, arbitrary: fc.record({ engine, do: fc.constant("reset") }) },
    publish: { weight: 8, arbitrary: fc.record({ engine, do: fc.constant("publish"), fate }) },
    "catch up": { weight: 3, arbitrary: fc.record({ engine, do: fc.constant("catch up"), at: fc.nat(9) }) },
    replay: {
      weight: 3,
      arbitrary: fc.record({ engine, do: fc.constant("replay"), lost: fc.nat(3), breaks: fc.boolean() }),
    },
  };
  const doings: Doing[] = ["admit", "evict", "remove unheld", "publish", "catch up", "replay", ...also];
  return fc.array(fc.oneof(...doings.map((doing) => all[doing])), { minLength: 1, maxLength: 60, size: "max" });
};

function run(network: Network, script: readonly Step[]): Network {
  for (const step of script) network.take(step);
  network.settle();
  return network;
}

/** Compares the index with what the engines hold, for prompts of text alone. */
function expectTruth(network: Network, compare: (indexed: number, cached: number) => boolean): void {
  for (const at of [0, 1] as const) {
    for (const text of texts) {
      const [indexed, cached] = [network.indexed(at, text), network.engines[at]?.cachedBlocks(text) ?? 0];
      if (!compare(indexed, cached))
        throw new Error(`Engine ${at} holds ${cached} blocks of ${JSON.stringify(text)}, indexed ${indexed}.`);
    }
  }
}

const equal = (indexed: number, cached: number) => indexed === cached;
const neverMore = (indexed: number, cached: number) => indexed <= cached;

describe("two streams with losses, doubles, delays and replays", () => {
  test("end in the index of the streams in order, which is what the engines hold", () => {
    const property = fc.property(setting, steps("clear", "restart", "reset"), (setting, script) => {
      const network = run(new Network(setting), script);
      expect(network.index.contents()).toEqual(network.inOrder().contents());
      expect(network.states()).toEqual(["live", "live"]);
      expectTruth(network, equal);
    });
    fc.assert(property, { numRuns: scaled(600) });
  });

  test("end there in the index of the package as well", () => {
    const property = fc.property(setting, steps("clear", "restart", "reset"), (setting, script) => {
      const network = run(new Network(setting, { createIndex: () => new RealIndex() }), script);
      expect(network.index.contents()).toEqual(network.inOrder().contents());
      expect(network.states()).toEqual(["live", "live"]);
      expectTruth(network, equal);
    });
    fc.assert(property, { numRuns: scaled(200) });
  });

  test("end there as well when hardly a batch may wait behind a gap", () => {
    const property = fc.property(setting, fc.nat(3_000), steps("clear", "restart"), (setting, bytes, script) => {
      const network = run(new Network(setting, { maxBufferedBytesPerRank: bytes }), script);
      expect(network.index.contents()).toEqual(network.inOrder().contents());
      expect(network.states()).toEqual(["live", "live"]);
    });
    fc.assert(property, { numRuns: scaled(300) });
  });

  test("never claim a block that an engine does not hold, when it no longer has what was lost", () => {
    let lost = 0;
    const property = fc.property(setting, fc.nat(4), steps("clear", "restart", "reset"), (setting, keep, script) => {
      const network = run(new Network(setting, { keep }), script);
      expectTruth(network, neverMore);
      lost += network.feed.counters.lostBatches;
      for (const state of network.states()) expect(["live", "untrusted"]).toContain(state);
    });
    fc.assert(property, { numRuns: scaled(400) });
    expect(lost).toBeGreaterThan(0);
  });

  test("know everything again from a clearing on, whatever was lost before", () => {
    const property = fc.property(
      setting,
      fc.integer({ min: 1, max: 4 }),
      steps(),
      steps(),
      (setting, keep, before, after) => {
        const network = run(new Network(setting, { keep }), before);
        for (const at of [0, 1] as const) {
          network.take({ engine: at, do: "clear" });
          network.take({ engine: at, do: "publish", fate: "arrives" });
        }
        for (const step of after) network.take(step.do === "publish" ? { ...step, fate: "arrives" } : step);
        network.settle();
        expect(network.states()).toEqual(["live", "live"]);
        expectTruth(network, equal);
      },
    );
    fc.assert(property, { numRuns: scaled(200) });
  });
});
