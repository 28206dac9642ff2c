import { describe, expect, test } from "vitest";
import { ArgumentTypeError, KvrouteError } from "../../src/errors.js";
import { weighEvent } from "../../src/selection/events/event.js";
import { MESSAGE_BYTES } from "../../src/selection/events/rank-feed.js";
import { GROUPS_MAX } from "../../src/selection/events/tiers.js";
import { weighWaiting } from "../../src/selection/events/waiting.js";
import {
  type CachedTokens,
  KvEventFeed,
  type KvEventFeedOptions,
  type NumberedBatch,
} from "../../src/selection/events.js";
import { a0, a1, b0, lone, removed, Stage, stored } from "../model/kv-event-stage.js";

const codeOf = (call: () => unknown) => {
  try {
    call();
  } catch (error) {
    if (error instanceof KvrouteError) return error.code;
    throw error;
  }
  return null;
};

describe("a limit", () => {
  test("maxBlocks holds, and the block that was announced first leaves the index as well", () => {
    const stage = new Stage({ maxBlocks: 3 });
    stage.apply(a0, 0, lone(1), lone(2));
    stage.apply(b0, 0, lone(3));
    expect(stage.feed.size.blocks).toBe(3);
    expect(stage.feed.counters.blocksForgotten).toBe(0);
    stage.apply(a0, 1, lone(1)); // announced anew, it is no longer the first
    stage.apply(b0, 1, lone(4));
    expect(stage.feed.size.blocks).toBe(3);
    expect(stage.feed.counters.blocksForgotten).toBe(1);
    expect([
      stage.overlap(a0, [2, 2]),
      stage.overlap(a0, [1, 1]),
      stage.overlap(b0, [3, 3]),
      stage.overlap(b0, [4, 4]),
    ]).toEqual([0, 1, 1, 1]);
  });

  test("maxWaitingBytesPerRank holds: the chain that waits longest goes", () => {
    const orphan = (number: number) => stored([BigInt(number)], [number, number], { parentBlockHash: 99n });
    const bytes = weighWaiting(orphan(1));
    const stage = new Stage({ maxWaitingBytesPerRank: 2 * bytes });
    stage.apply(a0, 0, orphan(1), orphan(2));
    stage.apply(a1, 0, orphan(1));
    expect([stage.feed.size.waitingBlocks, stage.feed.counters.waitingBlocksDropped]).toEqual([3, 0]);
    stage.apply(a0, 1, orphan(3));
    expect([stage.feed.size.waitingBlocks, stage.feed.counters.waitingBlocksDropped]).toEqual([3, 1]);
    stage.apply(a0, 2, stored([99n], [0, 0]));
    expect([1, 2, 3].map((n) => stage.overlap(a0, [0, 0, n, n]))).toEqual([1, 2, 2]);
    expect(stage.feed.size.waitingBlocks).toBe(1);
  });

  test("maxBufferedBytesPerRank holds: the batch that is furthest ahead goes, and a second replay brings it", () => {
    const bytes = MESSAGE_BYTES + weighEvent(lone(1));
    const stage = new Stage({ maxBufferedBytesPerRank: 2 * bytes });
    for (const seq of [1, 2]) stage.apply(a0, seq, lone(seq + 1));
    expect([stage.feed.size.bufferedBatches, stage.feed.counters.refusedBatches]).toEqual([2, 0]);
    stage.apply(a0, 3, lone(4));
    expect([stage.feed.size.bufferedBatches, stage.feed.counters.refusedBatches]).toEqual([2, 1]);
    stage.replay(a0, 0, lone(1));
    stage.feed.replayEnded(a0);
    expect(stage.requests.map(({ from }) => from)).toEqual([0, 3]);
    stage.replay(a0, 3, lone(4));
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 4 });
    expect([1, 2, 3, 4].map((n) => stage.overlap(a0, [n, n]))).toEqual([1, 1, 1, 1]);
  });

  test(`${GROUPS_MAX} groups of a rank are known: blocks of one more are not indexed, as their removals would go unheard`, () => {
    const stage = new Stage();
    const block = (groupIdx: number, specKind: string) =>
      stored([BigInt(groupIdx + 1)], [groupIdx, groupIdx], { groupIdx, specKind });
    for (let group = 0; group < GROUPS_MAX - 1; group++) stage.apply(a0, group, block(group, "mamba"));
    const [last, beyond] = [GROUPS_MAX - 1, GROUPS_MAX];
    stage.apply(a0, last, block(last, "full_attention"), block(beyond, "full_attention"));
    expect([last, beyond].map((group) => stage.overlap(a0, [group, group]))).toEqual([1, 0]);
    stage.apply(a0, beyond, removed([BigInt(last + 1)], { groupIdx: last }));
    expect(stage.index.size.entries).toBe(0);
  });

  test("maxRanks holds, and a rank that goes makes room", () => {
    const stage = new Stage({ maxRanks: 2 });
    stage.apply(a0, 0);
    stage.apply(a1, 0);
    expect(codeOf(() => stage.apply(b0, 0))).toBe("KVROUTE_KV_EVENT_RANKS");
    stage.apply(a0, 1);
    stage.feed.removeRank(a1);
    stage.apply(b0, 0);
    stage.feed.removeWorker("a");
    stage.apply(a1, 0);
    expect(stage.feed.size.ranks).toBe(2);
  });

  test.each([
    ["blockSize", 0],
    ["blockSize", 1.5],
    ["blockSize", 4_097],
    ["maxBlocks", 0],
    ["maxRanks", 0],
    ["maxWaitingBytesPerRank", -1],
    ["maxBufferedBytesPerRank", Number.NaN],
  ])("%s of %d is refused", (name, value) => {
    expect(codeOf(() => new Stage({ [name]: value }))).toBe("KVROUTE_ARGUMENT_RANGE");
  });
});

describe("an argument", () => {
  const apply = (worker: unknown, batch: unknown) => () =>
    new Stage().feed.apply(worker as typeof a0, batch as NumberedBatch);

  test("names a worker by a text or a whole number, and a rank", () => {
    expect(codeOf(apply(null, { seq: 0, events: [] }))).toBe("KVROUTE_ARGUMENT_TYPE");
    expect(codeOf(apply({ workerId: true, dpRank: 0 }, { seq: 0, events: [] }))).toBe("KVROUTE_ARGUMENT_TYPE");
    expect(codeOf(apply({ workerId: 1.5, dpRank: 0 }, { seq: 0, events: [] }))).toBe("KVROUTE_ARGUMENT_RANGE");
    expect(codeOf(apply({ workerId: 1, dpRank: -1 }, { seq: 0, events: [] }))).toBe("KVROUTE_ARGUMENT_RANGE");
  });

  test("names one worker by 1 and by 1n, and another by '1'", () => {
    const stage = new Stage();
    stage.feed.apply({ workerId: 1n, dpRank: 0 }, { seq: 0, events: [] });
    expect(stage.feed.status({ workerId: 1, dpRank: 0 })).not.toBeNull();
    expect(stage.feed.status({ workerId: "1", dpRank: 0 })).toBeNull();
    expect(stage.feed.status({ workerId: 2n ** 64n, dpRank: 0 })).toBeNull();
  });

  test("numbers a batch from 0 to 2^53 - 1, as either kind of integer", () => {
    expect(codeOf(apply(a0, { seq: 0n, events: [] }))).toBeNull();
    for (const seq of [-1, -1n, 0.5, 2n ** 64n - 1n]) {
      expect(codeOf(apply(a0, { seq, events: [] }))).toBe("KVROUTE_ARGUMENT_RANGE");
    }
  });

  test.each<[string, unknown, string]>([
    ["no batch", null, "Expected batch to be an object, got null."],
    ["a batch without a number", { events: [] }, "Expected seq to be a number, got undefined."],
    ["a batch without events", { seq: 0 }, "Expected events to be a list, got undefined."],
    ["a time in words", { seq: 0, events: [], ts: "1" }, 'Expected ts to be a number, got the string "1".'],
    ["a rank in words", { seq: 0, events: [], dpRank: "1" }, 'Expected dpRank to be a number, got the string "1".'],
    ["a count in words", { seq: 0, events: [], ignored: "1" }, 'Expected ignored to be a number, got the string "1".'],
    ["an event that is null", { seq: 0, events: [null] }, "Expected events[0] to be an object, got null."],
    [
      "an event of another type",
      { seq: 0, events: [lone(1), { type: "moved" }] },
      'Expected events[1].type to be "stored", "removed" or "cleared", got the string "moved".',
    ],
    [
      "a removal without hashes",
      { seq: 0, events: [{ type: "removed" }] },
      "Expected events[0].blockHashes to be a list, got undefined.",
    ],
    [
      "a hash that is a number",
      { seq: 0, events: [{ ...lone(1), blockHashes: [1n, 5] }] },
      "Expected events[0].blockHashes[1] to be a bigint or a string, got the number 5.",
    ],
    [
      "a parent that is left out",
      { seq: 0, events: [{ ...lone(1), parentBlockHash: undefined }] },
      "Expected events[0].parentBlockHash to be a bigint, a string or null, got undefined.",
    ],
    [
      "tokens in a list",
      { seq: 0, events: [{ ...lone(1), tokenIds: [1, 1] }] },
      "Expected events[0].tokenIds to be a Uint32Array, got an object.",
    ],
    [
      "a block size in words",
      { seq: 0, events: [{ ...lone(1), blockSize: "2" }] },
      'Expected events[0].blockSize to be a number, got the string "2".',
    ],
  ])("that is %s is refused, and the rank stays unknown", (_, batch, message) => {
    const stage = new Stage();
    const call = () => stage.feed.apply(a0, batch as NumberedBatch);
    expect(call).toThrow(ArgumentTypeError);
    expect(call).toThrow(message);
    expect(stage.feed.size.ranks).toBe(0);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])(
    "that is a time of %d is refused, and the rank stays unknown",
    (at) => {
      const stage = new Stage();
      expect(codeOf(() => stage.feed.apply(a0, { seq: 0, events: [], ts: at }))).toBe("KVROUTE_ARGUMENT_RANGE");
      expect(codeOf(() => stage.feed.apply(a0, { seq: 0, events: [lone(1)] }, at))).toBe("KVROUTE_ARGUMENT_RANGE");
      expect(codeOf(() => stage.feed.apply(a0, { seq: 0, events: [], ignored: at }))).toBe("KVROUTE_ARGUMENT_RANGE");
      expect(stage.feed.size.ranks).toBe(0);
      stage.apply(a0, 0);
      expect(codeOf(() => stage.feed.replayEnded(a0, at))).toBe("KVROUTE_ARGUMENT_RANGE");
    },
  );

  test("that is no object of cached tokens is refused", () => {
    const { feed } = new Stage();
    expect(codeOf(() => feed.reportCachedTokens(a0, null as unknown as CachedTokens))).toBe("KVROUTE_ARGUMENT_TYPE");
  });

  test("of options that is no object, index or function is refused", () => {
    const make = (options: unknown) => () => new KvEventFeed(options as KvEventFeedOptions);
    const { index } = new Stage();
    for (const options of [null, { blockSize: 2 }, { blockSize: 2, index: null }, { blockSize: 2, index, hash: 5 }]) {
      expect(codeOf(make(options))).toBe("KVROUTE_ARGUMENT_TYPE");
    }
    for (const name of ["onReplayNeeded", "onStateChange"]) {
      expect(codeOf(make({ blockSize: 2, index, [name]: 5 }))).toBe("KVROUTE_ARGUMENT_TYPE");
    }
  });

  test("reports a whole number of cached tokens", () => {
    const { feed } = new Stage();
    expect(codeOf(() => feed.reportCachedTokens(a0, { predicted: -1, actual: 0 }))).toBe("KVROUTE_ARGUMENT_RANGE");
    expect(codeOf(() => feed.reportCachedTokens(a0, { predicted: 0, actual: 0 }))).toBeNull();
  });

  test("gives the index the time at which a batch is applied", () => {
    const times: (number | undefined)[] = [];
    const stage = new Stage();
    stage.index.store = (_worker, _hashes, options?: { nowMs?: number }) => times.push(options?.nowMs);
    stage.feed.apply(a0, { seq: 1, ts: 2, events: [lone(2)] }, 10);
    stage.feed.apply(a0, { seq: 0, ts: 1, events: [lone(1)] }, 20);
    stage.feed.apply(a0, { seq: 2, ts: 3, events: [lone(3)] });
    expect(times).toEqual([20, 20, undefined]);
  });

  test("counts the events that a decoder left out", () => {
    const stage = new Stage();
    stage.feed.apply(a0, { seq: 0, events: [], ignored: 3 });
    expect(stage.feed.counters.unknownEvents).toBe(3);
  });
});
