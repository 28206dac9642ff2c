import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LEARNT_DEPTH, SharedPrefix } from "../../src/selection/policies/shared-prefix.js";
import { type Candidate, type Policy, type PrefixHashOptions, prefixHash } from "../../src/selection/policy.js";
import { candidate, countChoices, expectEven, type Figures, fleet, noChance, prompt, request } from "./policy-stage.js";

describe("prefix-hash", () => {
  const hash64 = fc.bigInt(0n, 2n ** 64n - 1n);
  const prompts = fc.array(hash64, { minLength: 1, maxLength: 5 });
  const ids = fc.uniqueArray(fc.oneof(fc.nat(), fc.string()), { minLength: 2, maxLength: 9 });
  const chosen = (policy: Policy, workers: readonly Candidate[], prompt: readonly bigint[]): Candidate =>
    workers[policy.choose(workers, request(...prompt), noChance).index] as Candidate;

  test("sends the same prefix to the same worker, whatever follows", () => {
    fc.assert(
      fc.property(hash64, hash64, prompts, prompts, (first, second, left, right) => {
        const policy = prefixHash({ prefixBlocks: 2 });
        const one = chosen(policy, fleet(8), [first, second, ...left]);
        expect(chosen(policy, fleet(8), [first, second, ...right]).worker).toEqual(one.worker);
      }),
    );
  });

  test("looks at every one of the first blocks, and at what a short prompt has", () => {
    const workers = fleet(64);
    const policy = prefixHash({ prefixBlocks: 3 });
    const spread = (promptOf: (key: bigint) => bigint[]): number =>
      new Set(Array.from({ length: 64 }, (_, key) => chosen(policy, workers, promptOf(BigInt(key))).worker.workerId))
        .size;
    expect(spread((key) => [key])).toBeGreaterThan(30);
    expect(spread((key) => [1n, key])).toBeGreaterThan(30);
    expect(spread((key) => [1n, 2n, key])).toBeGreaterThan(30);
    expect(spread((key) => [key << 32n])).toBeGreaterThan(30);
    expect(spread((key) => [1n, 2n, 3n, key])).toBe(1);
  });

  test("moves only the prompts of a worker that goes", () => {
    fc.assert(
      fc.property(ids, fc.nat(), prompts, (names, which, prompt) => {
        const policy = prefixHash();
        const before = names.map((id) => candidate({ id }));
        const gone = before[which % before.length] as Candidate;
        const kept = chosen(policy, before, prompt);
        fc.pre(kept !== gone);
        const after = before.filter((one) => one !== gone);
        expect(chosen(policy, after, prompt)).toBe(kept);
      }),
    );
  });

  test("does not depend on the order of the list, on the instance, or on what was chosen before", () => {
    fc.assert(
      fc.property(ids, prompts, prompts, (names, earlier, prompt) => {
        const used = prefixHash();
        chosen(used, fleet(3), earlier);
        const workers = names.map((id) => candidate({ id }));
        const reversed = names.map((id) => candidate({ id })).reverse();
        expect(chosen(used, workers, prompt).worker).toEqual(chosen(prefixHash(), reversed, prompt).worker);
      }),
    );
  });

  test("gives every worker about the same share of many prefixes", () => {
    const workers = fleet(8);
    const counts = workers.map(() => 0);
    const policy = prefixHash();
    for (let key = 0; key < 80_000; key++) {
      const { index } = policy.choose(workers, request(0, key), noChance);
      counts[index] = (counts[index] as number) + 1;
    }
    expectEven(counts, 0.03);
  });

  test('takes 1 and 1n for one worker, and "1" and other ranks for others', () => {
    const policy = prefixHash();
    const named = (figures: Figures): string =>
      Array.from({ length: 64 }, (_, key) => {
        const workers = [candidate({ id: "rival" }), candidate(figures)];
        return policy.choose(workers, request(key), noChance).index;
      }).join("");
    expect(named({ id: 1 })).toBe(named({ id: 1n }));
    expect(named({ id: 1 })).not.toBe(named({ id: "1" }));
    expect(named({ id: 1 })).not.toBe(named({ id: 1, dpRank: 1 }));
  });

  test("spreads prompts without a full block at random", () => {
    expectEven(countChoices(prefixHash(), fleet(8), 80_000, request()), 0.03);
  });

  test("refuses a number of blocks that is not a whole number from 1 to 65536", () => {
    for (const prefixBlocks of [0, -1, 1.5, Number.NaN, 65_537]) {
      expect(() => prefixHash({ prefixBlocks })).toThrow(
        expect.objectContaining({
          code: "KVROUTE_OPTION",
          message: `Expected prefixBlocks to be a whole number from 1 to 65536, got ${prefixBlocks}.`,
        }),
      );
    }
    for (const prefixBlocks of [1, 65_536]) expect(prefixHash({ prefixBlocks }).name).toBe("prefix-hash");
  });
});

describe("prefix-hash by what the request says of itself", () => {
  const placeOf = (of: Parameters<typeof prompt>[1], blocks = 4): number =>
    prefixHash().choose(fleet(64), prompt(blocks, of), noChance).index;

  test("keeps a session on one worker, whatever its prompts", () => {
    const placed = Array.from(
      { length: 20 },
      (_, key) =>
        prefixHash().choose(fleet(64), { ...request(key, key), session: "chat", affinityKey: `${key}` }, noChance)
          .index,
    );
    expect(new Set(placed).size).toBe(1);
    expect(placeOf({ session: "chat" }, 0)).toBe(placed[0]); // also without a full block
  });

  test("else keeps an affinity key on one worker, else goes by the blocks", () => {
    expect(placeOf({ affinityKey: "k" }, 9)).toBe(placeOf({ affinityKey: "k" }, 0));
    expect(placeOf({})).toBe(prefixHash().choose(fleet(64), prompt(9), noChance).index);
  });

  test("spreads sessions as it spreads keys, apart from each other", () => {
    for (const name of ["session", "affinityKey"]) {
      const counts = fleet(8).map(() => 0);
      const policy = prefixHash();
      for (let key = 0; key < 40_000; key++) {
        const { index } = policy.choose(fleet(8), prompt(2, { [name]: `${key}` }), noChance);
        counts[index] = (counts[index] as number) + 1;
      }
      expectEven(counts, 0.05);
    }
    const same = Array.from({ length: 200 }, (_, key) =>
      placeOf({ session: `${key}` }) === placeOf({ affinityKey: `${key}` }) ? 1 : 0,
    );
    expect(same.filter(Boolean).length).toBeLessThan(20);
  });
});

describe("prefix-hash under weights", () => {
  const weighted = (...weights: number[]): Candidate[] => weights.map((weight, id) => candidate({ id, weight }));
  const place = (workers: readonly Candidate[], key: number): number =>
    prefixHash().choose(workers, request(0, key), noChance).index;

  test("chooses as without weights where all are equal", () => {
    for (let key = 0; key < 500; key++) expect(place(weighted(3, 3, 3), key)).toBe(place(weighted(1, 1, 1), key));
  });

  test("gives shares by the weights", () => {
    const counts = [0, 0, 0, 0];
    for (let key = 0; key < 80_000; key++) {
      const index = place(weighted(1, 2, 0.5, 0.5), key);
      counts[index] = (counts[index] as number) + 1;
    }
    const [one, two, ...halves] = counts as [number, number, ...number[]];
    expectEven([one, two / 2, ...halves.map((count) => 2 * count)], 0.05);
  });

  test("moves keys to or from a worker alone whose weight changes", () => {
    let moved = 0;
    for (let key = 0; key < 5_000; key++) {
      const [before, after] = [place(weighted(1, 1, 1.5), key), place(weighted(1, 1, 3), key)];
      if (before === after) continue;
      moved++;
      expect(after).toBe(2);
    }
    expect(moved).toBeGreaterThan(500);
  });

  test("moves only the keys of a worker that goes", () => {
    const workers = weighted(1, 2, 3);
    for (let key = 0; key < 2_000; key++) {
      const kept = workers[place(workers, key)];
      const without = workers.filter(({ worker }) => worker.workerId !== 1);
      if (kept?.worker.workerId !== 1) expect(without[place(without, key)]).toBe(kept);
    }
  });
});

describe("prefix-hash with a learnt prefix", () => {
  /** A prompt of a system prompt of so many blocks, a conversation's own block, and a turn. */
  const turn = (system: number, conversation: number, number = 0): BigUint64Array =>
    BigUint64Array.from([
      ...Array.from({ length: system }, (_, at) => BigInt(at + 1)),
      BigInt(1_000 + conversation),
      BigInt(1_000_000 + 1_000 * conversation + number),
    ]);
  const own = (shared: SharedPrefix, hashes: BigUint64Array): bigint => shared.firstOwn(hashes);

  test("keys on the first block until it has seen 4 different blocks after one", () => {
    const shared = new SharedPrefix(4, 1_000);
    expect([0, 1, 2, 3, 0].map((conversation) => own(shared, turn(1, conversation)))).toEqual([
      1n,
      1n,
      1n,
      1_003n,
      1_000n,
    ]);
  });

  test("keys on the first block after the last that many follow", () => {
    const shared = new SharedPrefix(4, 1_000);
    for (let conversation = 0; conversation < 4; conversation++) own(shared, turn(3, conversation));
    expect(own(shared, turn(3, 77, 5))).toBe(1_077n);
    expect(own(shared, BigUint64Array.of(1n, 55n))).toBe(1n); // blocks 1 and 2 were followed by one other alone
  });

  test("keys beyond the deeper of two branchings, also where what lies between is not shared", () => {
    const shared = new SharedPrefix(4, 1_000);
    for (const team of [10, 20, 30, 40]) own(shared, BigUint64Array.of(1n, BigInt(team)));
    for (const chat of [101, 102, 103, 104]) own(shared, BigUint64Array.of(1n, 10n, 11n, BigInt(chat)));
    expect(own(shared, BigUint64Array.of(1n, 10n, 11n, 105n, 9n))).toBe(105n);
    expect(own(shared, BigUint64Array.of(1n, 20n, 21n, 205n, 9n))).toBe(20n);
  });

  test("is not moved by a busy conversation, however often its prefix is seen", () => {
    const shared = new SharedPrefix(4, 1_000);
    for (let conversation = 0; conversation < 4; conversation++) own(shared, turn(1, conversation));
    for (let time = 0; time < 100; time++) expect(own(shared, turn(1, 2))).toBe(1_002n);
  });

  test("keys on the last block of a prompt that ends in the shared prefix", () => {
    const shared = new SharedPrefix(4, 1_000);
    for (let conversation = 0; conversation < 4; conversation++) own(shared, turn(2, conversation));
    expect(own(shared, BigUint64Array.of(1n, 2n))).toBe(2n);
    expect(own(shared, BigUint64Array.of(1n))).toBe(1n);
  });

  test("learns in the first 64 blocks, and not beyond", () => {
    const branch = (depth: number, tail: number): BigUint64Array =>
      BigUint64Array.from([...Array.from({ length: depth }, (_, at) => BigInt(at + 1)), BigInt(1_000 + tail), 9n]);
    for (const [depth, expected] of [
      [LEARNT_DEPTH, 1_003n],
      [LEARNT_DEPTH + 1, 1n],
    ] as const) {
      const shared = new SharedPrefix(4, 10_000);
      const keys = [0, 1, 2, 3].map((tail) => own(shared, branch(depth, tail)));
      expect(keys[3]).toBe(expected);
    }
  });

  test("remembers as many blocks as it may and no more, those that are still seen above all", () => {
    const shared = new SharedPrefix(2, 10);
    for (let conversation = 0; conversation < 1_000; conversation++) {
      own(shared, turn(2, conversation));
      expect(shared.size).toBeLessThanOrEqual(10);
    }
    expect(shared.size).toBe(10);
    expect(own(shared, turn(2, 5_000))).toBe(6_000n);
  });

  test("spreads conversations that share a long prefix, and keeps each on its worker", () => {
    const policy = prefixHash({ prefixBlocks: "learnt" });
    const workers = fleet(8);
    const place = (conversation: number, number: number): number =>
      policy.choose(workers, { ...prompt(0), sequenceHashes: turn(5, conversation, number) }, noChance).index;
    for (let conversation = 0; conversation < 4; conversation++) place(conversation, 0);
    const counts = workers.map(() => 0);
    for (let conversation = 0; conversation < 4_000; conversation++) {
      const index = place(conversation, 1);
      counts[index] = (counts[index] as number) + 1;
      expect(place(conversation, 2)).toBe(index);
    }
    expectEven(counts, 0.2);
  });

  test("refuses options out of range", () => {
    const refused: [PrefixHashOptions, string][] = [
      [{ fanOut: 1 }, "Expected fanOut to be a whole number from 2 to 64, got 1."],
      [{ fanOut: 65 }, "Expected fanOut to be a whole number from 2 to 64, got 65."],
      [{ maxLearntBlocks: 0 }, "Expected maxLearntBlocks to be a whole number from 1 to 16777215, got 0."],
      [{ maxLearntBlocks: 2 ** 24 }, "Expected maxLearntBlocks to be a whole number from 1 to 16777215, got 16777216."],
      [
        { prefixBlocks: "all" as "learnt" },
        'Expected prefixBlocks to be a whole number from 1 to 65536, got the string "all".',
      ],
    ];
    for (const [options, message] of refused) expect(() => prefixHash(options)).toThrow(message);
    for (const fanOut of [2, 64]) expect(prefixHash({ prefixBlocks: "learnt", fanOut }).name).toBe("prefix-hash");
    for (const maxLearntBlocks of [1, 2 ** 24 - 1]) expect(prefixHash({ maxLearntBlocks }).name).toBe("prefix-hash");
  });
});
