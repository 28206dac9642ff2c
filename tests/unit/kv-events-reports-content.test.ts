import { describe, expect, test } from "vitest";
import { a0, a1, b0, cleared, decoded, removed, Stage, stored } from "../model/kv-event-stage.js";

// Reports of users of other routers about what events say, as tests: each title names the report.

describe("a model that mixes kinds of attention (Infera#98, dynamo#12169)", () => {
  const announce = (hash: bigint, tokens: number[], group: number, kind: string, window: number | null) => [
    "BlockStored",
    [hash],
    null,
    tokens,
    2,
    null,
    "GPU",
    null,
    null,
    group,
    kind,
    window,
  ];

  test("is indexed by its groups with full attention alone", () => {
    const stage = new Stage();
    stage.apply(
      a0,
      0,
      ...decoded(announce(1n, [1, 2], 0, "sliding_window", 4096), announce(2n, [3, 4], 1, "mamba", null)),
    );
    expect(stage.index.size.entries).toBe(0);
    stage.apply(
      a0,
      1,
      ...decoded(announce(1n, [1, 2], 2, "full_attention", null), announce(3n, [5, 6], 3, "mla_attention", null)),
    );
    expect(
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ].map((tokens) => stage.overlap(a0, tokens)),
    ).toEqual([1, 0, 1]);
    expect(stage.feed.counters.otherGroupEvents).toBe(2);
  });

  test("keeps a block when another group drops it, whose removal names the group alone", () => {
    const stage = new Stage();
    stage.apply(
      a0,
      0,
      ...decoded(announce(1n, [1, 2], 0, "sliding_window", 4096), announce(1n, [1, 2], 1, "full_attention", null)),
    );
    stage.apply(a0, 1, ...decoded(["BlockRemoved", [1n], "GPU", 0]));
    expect(stage.overlap(a0, [1, 2])).toBe(1);
    stage.apply(a0, 2, ...decoded(["BlockRemoved", [1n], "GPU", 1]));
    expect(stage.overlap(a0, [1, 2])).toBe(0);
  });

  test("does not mistake the block size of another group for its own", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([1n], [1, 2, 3, 4], { blockSize: 4, groupIdx: 1, specKind: "mamba" }));
    expect(stage.state(a0)).toBe("live");
  });
});

describe("hashes that differ without a word (DingoCache#77, dynamo#3581)", () => {
  test("show as a prediction mismatch after 100 requests with hits that nobody foresaw", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([1n, 2n], [1, 2, 3, 4]));
    const predicted = stage.overlap(a0, [1, 9, 9, 9]); // what we make of the prompt is not what the engine made of it
    expect(predicted).toBe(0);
    for (let request = 1; request <= 99; request++) stage.feed.reportCachedTokens(a0, { predicted, actual: 4 });
    expect(stage.state(a0)).toBe("live");
    stage.feed.reportCachedTokens(a0, { predicted, actual: 4 });
    expect(stage.feed.status(a0)).toMatchObject({ state: "prediction-mismatch" });
    expect(stage.feed.status(a0)?.reason).toBe(
      "Expected 0 cached tokens in 100 requests, got 400: tokens, salts or adapters are hashed differently.",
    );
    expect(stage.changes.map(({ state }) => state)).toEqual(["prediction-mismatch"]);
    expect(stage.state(b0)).toBeUndefined();
  });

  test("are forgiven once predictions hold for 100 requests", () => {
    const stage = new Stage();
    stage.apply(a0, 0);
    for (let request = 0; request < 100; request++) stage.feed.reportCachedTokens(a0, { predicted: 0, actual: 64 });
    for (let request = 0; request < 100; request++) stage.feed.reportCachedTokens(a0, { predicted: 64, actual: 64 });
    expect(stage.changes.map(({ state }) => state)).toEqual(["prediction-mismatch", "live"]);
  });

  test("are judged a hundred requests at a time: what was right before is no excuse", () => {
    const stage = new Stage();
    stage.apply(a0, 0);
    for (let request = 0; request < 100; request++) stage.feed.reportCachedTokens(a0, { predicted: 64, actual: 64 });
    for (let request = 0; request < 100; request++) stage.feed.reportCachedTokens(a0, { predicted: 0, actual: 64 });
    expect(stage.state(a0)).toBe("prediction-mismatch");
  });

  test("are not suspected of requests without a cached block, nor of hits that are close", () => {
    const stage = new Stage();
    stage.apply(a0, 0);
    for (let request = 0; request < 1_000; request++) stage.feed.reportCachedTokens(a0, { predicted: 0, actual: 1 });
    for (let request = 0; request < 1_000; request++) stage.feed.reportCachedTokens(a0, { predicted: 7, actual: 64 });
    expect(stage.changes).toEqual([]);
  });

  test("show as well when what is predicted is never found", () => {
    const stage = new Stage();
    stage.apply(a0, 0);
    for (let request = 0; request < 100; request++) stage.feed.reportCachedTokens(a0, { predicted: 64, actual: 0 });
    expect(stage.state(a0)).toBe("prediction-mismatch");
  });
});

describe("an adapter that is named in the extra keys (llm-d-router#2927)", () => {
  const tokens = [1, 2, 3, 4];
  test.each([
    ["beside its name", ["BlockStored", [1n, 2n], null, tokens, 2, 7, "GPU", "sql", [["sql"], ["sql"]]]],
    ["beside its number alone", ["BlockStored", [1n, 2n], null, tokens, 2, 7, "GPU", null, [["sql"], ["sql"]]]],
  ])("%s is matched for that adapter only, and taken for no image", (_, event) => {
    const stage = new Stage();
    stage.apply(a0, 0, ...decoded(event));
    expect(stage.overlap(a0, tokens, { loraName: "sql" })).toBe(2);
    expect(stage.overlap(a0, tokens)).toBe(0);
    expect(stage.overlap(a0, tokens, { loraName: "other" })).toBe(0);
    expect(stage.overlap(a0, tokens, { cacheSalt: "sql" })).toBe(0);
    expect(stage.feed.counters.opaqueBlocks).toBe(0);
  });
});

describe("ranks of one worker (llm-d-router#2306, #2936, vllm-router#223)", () => {
  test("are kept apart: what rank 1 removes, clears or loses, rank 0 still holds", () => {
    const stage = new Stage();
    for (const worker of [a0, a1]) stage.apply(worker, 0, stored([1n, 2n], [1, 2, 3, 4]));
    stage.apply(a1, 1, removed([2n]));
    expect([a0, a1].map((worker) => stage.overlap(worker, [1, 2, 3, 4]))).toEqual([2, 1]);
    stage.apply(a1, 2, cleared);
    stage.apply(a1, 9, cleared);
    expect([a0, a1].map((worker) => stage.overlap(worker, [1, 2, 3, 4]))).toEqual([2, 0]);
    expect([a0, a1].map((worker) => stage.state(worker))).toEqual(["live", "gap"]);
  });

  test("are told apart by what the engine says, even if all were registered as rank 0", () => {
    const stage = new Stage();
    for (const dpRank of [0, 1]) {
      stage.feed.apply(a0, { seq: 0, ts: 1, dpRank, events: [stored([1n], [dpRank, dpRank])] });
    }
    expect(stage.overlap(a0, [0, 0])).toBe(1);
    expect(stage.overlap(a1, [1, 1])).toBe(1);
    expect(stage.overlap(a0, [1, 1])).toBe(0);
    stage.feed.apply(a0, { seq: 5, ts: 2, dpRank: 1, events: [] });
    expect(stage.requests).toEqual([{ worker: a1, source: a0, from: 1 }]);
  });

  test("go one by one, or together with their worker", () => {
    const stage = new Stage();
    for (const worker of [a0, a1, b0]) stage.apply(worker, 0, stored([1n], [1, 2]));
    stage.feed.removeRank(a1);
    expect([a0, a1, b0].map((worker) => stage.overlap(worker, [1, 2]))).toEqual([1, 0, 1]);
    expect(stage.feed.status(a1)).toBeNull();
    stage.feed.removeWorker("a");
    expect(stage.feed.statuses().map(({ worker }) => worker)).toEqual([b0]);
    expect(stage.feed.size).toMatchObject({ ranks: 1, blocks: 1 });
    expect([a0, a1, b0].map((worker) => stage.overlap(worker, [1, 2]))).toEqual([0, 0, 1]);
  });
});
