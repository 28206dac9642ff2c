import { describe, expect, test } from "vitest";
import { a0, cleared, decoded, lone, removed, Stage, stored } from "../model/kv-event-stage.js";

describe("what is indexed", () => {
  test("a block that is stored signed and removed unsigned, and the other way round", () => {
    const stage = new Stage();
    stage.apply(
      a0,
      0,
      stored([-1n], [1, 2]),
      removed([2n ** 64n - 1n]),
      stored([2n ** 63n], [3, 4]),
      removed([-(2n ** 63n)]),
    );
    expect(stage.index.size.entries).toBe(0);
    expect(stage.feed.counters.unknownRemovals).toBe(0);
  });

  test("a block that is named by bytes", () => {
    const stage = new Stage();
    const name = Uint8Array.of(0, 255, 16);
    stage.apply(a0, 0, ...decoded(["BlockStored", [name], null, [1, 2], 2]));
    expect(stage.overlap(a0, [1, 2])).toBe(1);
    stage.apply(a0, 1, ...decoded(["BlockRemoved", [name]]));
    expect(stage.overlap(a0, [1, 2])).toBe(0);
  });

  test("a chain behind a block of an earlier batch, with the adapter and the salt of its beginning", () => {
    const stage = new Stage();
    stage.apply(a0, 0, ...decoded(["BlockStored", [1n], null, [1, 2], 2, null, "GPU", "sql", [["sql", "s"]]]));
    stage.apply(a0, 1, ...decoded(["BlockStored", [2n], 1n, [3, 4], 2, null, "GPU", "sql", [["sql"]]]));
    expect(stage.overlap(a0, [1, 2, 3, 4], { loraName: "sql", cacheSalt: "s" })).toBe(2);
    expect(stage.overlap(a0, [1, 2, 3, 4], { loraName: "sql" })).toBe(0);
    expect(stage.overlap(a0, [1, 2, 3, 4])).toBe(0);
  });

  test("no block from the first image on, in its own chain and behind it", () => {
    const stage = new Stage();
    stage.apply(
      a0,
      0,
      ...decoded(["BlockStored", [1n, 2n], null, [1, 2, 3, 4], 2, null, "GPU", null, [null, [["img", 0]]]]),
    );
    stage.apply(a0, 1, stored([3n], [5, 6], { parentBlockHash: 2n }));
    expect(stage.overlap(a0, [1, 2, 3, 4, 5, 6])).toBe(1);
    expect(stage.feed.size).toMatchObject({ blocks: 3, waitingBlocks: 0 });
    expect(stage.feed.counters.opaqueBlocks).toBe(2);
    stage.apply(a0, 2, removed([1n, 2n, 3n]));
    expect(stage.feed.size.blocks).toBe(0);
    expect(stage.feed.counters.unknownRemovals).toBe(0);
  });

  test("no block in a lower tier, which is counted, and whose removal leaves the device's block", () => {
    const stage = new Stage();
    const mediums = ["CPU", "CPU_TIER1", "CPU_TIER2", "DISK", "STORAGE", "EXTERNAL", "tape"];
    stage.apply(
      a0,
      0,
      stored([1n], [1, 2], { medium: "gpu" }),
      ...mediums.map((medium) => stored([2n], [3, 4], { medium })),
    );
    stage.apply(a0, 1, removed([1n], { medium: "CPU" }));
    expect(stage.overlap(a0, [1, 2])).toBe(1);
    expect(stage.overlap(a0, [3, 4])).toBe(0);
    expect(stage.feed.counters.lowerTierBlocks).toEqual({ host: 2, disk: 3, external: 1, unknown: 1 });
  });

  test("no block of another publisher", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([1n], [1, 2], { locality: "LOCAL" }), stored([2n], [3, 4], { locality: "REMOTE" }));
    stage.apply(a0, 1, removed([1n], { locality: "REMOTE" }));
    expect(
      [
        [1, 2],
        [3, 4],
      ].map((tokens) => stage.overlap(a0, tokens)),
    ).toEqual([1, 0]);
    expect(stage.feed.counters.remoteEvents).toBe(2);
  });

  test("no chain that names a block twice or as its own parent", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([1n, 1n], [1, 2, 3, 4]), stored([-1n], [1, 2], { parentBlockHash: 2n ** 64n - 1n }));
    expect(stage.feed.size).toMatchObject({ blocks: 0, waitingBlocks: 0 });
    expect(stage.feed.counters.circularEvents).toBe(2);
  });

  test("the first group alone, where the engine never names a kind; none with a window", () => {
    const stage = new Stage();
    const groups = [null, 0, 1].map((groupIdx, at) => stored([BigInt(at + 1)], [at, at], { groupIdx }));
    stage.apply(a0, 0, ...groups, stored([4n], [3, 3], { groupIdx: 0, slidingWindow: 128 }));
    expect([0, 1, 2, 3].map((token) => stage.overlap(a0, [token, token]))).toEqual([1, 1, 0, 0]);
  });

  test("what an engine's hash stands for last", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([1n], [1, 2]), stored([1n], [3, 4]));
    expect(
      [
        [1, 2],
        [3, 4],
      ].map((tokens) => stage.overlap(a0, tokens)),
    ).toEqual([0, 1]);
    expect(stage.feed.size.blocks).toBe(1);
  });
});

describe("blocks of another size", () => {
  test("are left out, and the state says so until the engine clears its cache", () => {
    const stage = new Stage();
    stage.apply(a0, 0, lone(1), stored([2n], [1, 2, 3, 4], { blockSize: 4 }));
    expect(stage.feed.status(a0)).toMatchObject({
      state: "block-size-mismatch",
      reason: "Expected blocks of 2 tokens, got some of 4, which are left out.",
    });
    expect(stage.overlap(a0, [1, 1])).toBe(1);
    expect(stage.overlap(a0, [1, 2, 3, 4])).toBe(0);
    stage.apply(a0, 1, cleared);
    expect(stage.state(a0)).toBe("live");
    expect(stage.feed.counters.blockSizeEvents).toBe(1);
  });
});
