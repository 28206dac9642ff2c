import { describe, expect, test } from "vitest";
import { a0, a1, b0, cleared, decoded, removed, Stage, stored } from "../model/kv-event-stage.js";

// Reports of users of other routers about streams of events, as tests: each title names the report.

describe("a restart of an engine (llm-d-router#2853, #2854)", () => {
  test("is noticed when numbers go back to 0: what was indexed is cleared, and a replay is asked for", () => {
    const stage = new Stage();
    for (let seq = 0; seq <= 50; seq++) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    expect(stage.overlap(a0, [50, 50])).toBe(1);

    stage.feed.apply(a0, { seq: 0, ts: 2_000, events: [stored([1n], [7, 7])] });
    expect(stage.overlap(a0, [50, 50])).toBe(0);
    expect(stage.overlap(a0, [7, 7])).toBe(1);
    expect(stage.requests).toEqual([{ worker: a0, source: a0, from: 0 }]);
    expect(stage.feed.counters.restarts).toBe(1);
  });

  test("is noticed without times as well", () => {
    const stage = new Stage();
    for (let seq = 0; seq <= 50; seq++) stage.feed.apply(a0, { seq, events: [stored([BigInt(seq + 1)], [seq, seq])] });
    stage.feed.apply(a0, { seq: 0, events: [] });
    expect(stage.index.size.entries).toBe(0);
    expect(stage.requests.map(({ from }) => from)).toEqual([0]);
  });

  test("is noticed when its first batches are lost, by a later time under a number that was passed", () => {
    const stage = new Stage();
    for (let seq = 0; seq <= 50; seq++) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    stage.feed.apply(a0, { seq: 3, ts: 2_000, events: [] });
    expect(stage.index.size.entries).toBe(0);
    expect(stage.state(a0)).toBe("gap");
    expect(stage.requests.map(({ from }) => from)).toEqual([0]);
  });

  test("is noticed by the time of number 0 alone, should the engine's clock have gone back", () => {
    const stage = new Stage();
    for (let seq = 0; seq <= 5; seq++) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    stage.feed.apply(a0, { seq: 0, ts: 500, events: [] });
    expect(stage.index.size.entries).toBe(0);
    expect(stage.feed.counters.restarts).toBe(1);
  });

  test("is not seen in a replay, should the engine's clock have gone back meanwhile", () => {
    const stage = new Stage();
    stage.feed.apply(a0, { seq: 2, ts: 100, events: [] });
    for (const seq of [0, 1]) stage.feed.apply(a0, { seq, ts: 101, events: [], replayed: true });
    expect(stage.state(a0)).toBe("live");
    expect(stage.feed.counters.restarts).toBe(0);
  });

  test("is not undone by what a replay still brings of the time before", () => {
    const stage = new Stage();
    for (const seq of [0, 1, 2, 5]) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    stage.feed.apply(a0, { seq: 0, ts: 2_000, events: [] });
    for (const seq of [1, 2, 3, 4]) stage.replay(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    expect(stage.index.size.entries).toBe(0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 1 });
    stage.feed.apply(a0, { seq: 1, ts: 2_001, events: [stored([1n], [7, 7])] });
    expect(stage.overlap(a0, [7, 7])).toBe(1);
  });

  test("whose clock has gone back is replayed all the same", () => {
    const stage = new Stage();
    for (const seq of [0, 1, 2]) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    stage.feed.apply(a0, { seq: 0, ts: 500, events: [] });
    stage.feed.apply(a0, { seq: 2, ts: 502, events: [] });
    stage.feed.apply(a0, { seq: 1, ts: 501, events: [stored([1n], [7, 7])], replayed: true });
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 3 });
    expect(stage.overlap(a0, [7, 7])).toBe(1);
  });

  test("is not mistaken for a batch that comes twice", () => {
    const stage = new Stage();
    for (const seq of [0, 1, 2, 0, 1, 2]) stage.apply(a0, seq, stored([BigInt(seq + 1)], [seq, seq]));
    expect(stage.overlap(a0, [2, 2])).toBe(1);
    expect(stage.requests).toEqual([]);
    expect(stage.feed.counters).toMatchObject({ restarts: 0, duplicateBatches: 3, batches: 3 });
  });
});

describe("a gap in the numbers (llm-d-router#1737)", () => {
  const events = [0, 1, 2, 3, 4, 5].map((seq) => stored([BigInt(seq + 1)], [seq, seq]));
  const give = (stage: Stage, ...seqs: number[]) => {
    for (const seq of seqs) stage.apply(a0, seq, events[seq] as (typeof events)[number]);
  };

  test("asks for a replay from the first missing number, and is closed by it", () => {
    const stage = new Stage();
    give(stage, 0, 1, 2, 5);
    expect(stage.requests).toEqual([{ worker: a0, source: a0, from: 3 }]);
    expect(stage.feed.status(a0)).toMatchObject({ state: "gap", next: 3 });
    expect(stage.overlap(a0, [5, 5])).toBe(0);

    for (const seq of [3, 4, 5]) stage.replay(a0, seq, events[seq] as (typeof events)[number]);
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", reason: null, next: 6 });
    for (let seq = 0; seq <= 5; seq++) expect(stage.overlap(a0, [seq, seq])).toBe(1);
    expect(stage.changes.map(({ state }) => state)).toEqual(["gap", "live"]);
    expect(stage.requests).toHaveLength(1);
  });

  test("clears the rank and leaves it untrusted when the replay no longer has what is missing", () => {
    const stage = new Stage();
    give(stage, 0, 1, 2, 5);
    stage.replay(a0, 5, events[5] as (typeof events)[number]);
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "untrusted", next: 6 });
    expect(stage.feed.status(a0)?.reason).toContain("Batches 3 to 4 are lost");
    expect(stage.overlap(a0, [1, 1])).toBe(0);
    expect(stage.overlap(a0, [5, 5])).toBe(1);

    stage.apply(a0, 6, cleared);
    expect(stage.state(a0)).toBe("live");
  });

  test("clears the rank at once when nobody can ask for a replay", () => {
    const stage = new Stage({ onReplayNeeded: undefined });
    give(stage, 0, 1, 2, 5);
    expect(stage.state(a0)).toBe("untrusted");
    expect(stage.overlap(a0, [1, 1])).toBe(0);
    expect(stage.overlap(a0, [5, 5])).toBe(1);
  });
});

describe("a chain whose parent is unknown (llm-d-kv-cache#372)", () => {
  test("waits, matches nothing meanwhile, and is attached when its parent arrives", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([3n], [5, 6], { parentBlockHash: 2n }), stored([2n], [3, 4], { parentBlockHash: 1n }));
    expect(stage.feed.size).toMatchObject({ waitingBlocks: 2, blocks: 0 });
    for (const tokens of [
      [5, 6],
      [3, 4],
      [3, 4, 5, 6],
    ])
      expect(stage.overlap(a0, tokens)).toBe(0);

    stage.apply(a0, 1, stored([1n], [1, 2]));
    expect(stage.overlap(a0, [1, 2, 3, 4, 5, 6])).toBe(3);
    expect(stage.overlap(a0, [5, 6])).toBe(0);
    expect(stage.feed.size).toMatchObject({ waitingBlocks: 0, blocks: 3 });
  });

  test("lets a later removal win over the chain that still waits", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([2n, 3n, 4n], [3, 4, 5, 6, 7, 8], { parentBlockHash: 1n }), removed([3n]));
    stage.apply(a0, 1, stored([1n], [1, 2]));
    expect(stage.overlap(a0, [1, 2, 3, 4, 5, 6, 7, 8])).toBe(2);
    expect(stage.feed.size).toMatchObject({ blocks: 3, waitingBlocks: 0 });

    stage.apply(a0, 2, stored([3n], [5, 6], { parentBlockHash: 2n }));
    expect(stage.overlap(a0, [1, 2, 3, 4, 5, 6, 7, 8])).toBe(4);
  });

  test("waits no longer once all its blocks are removed", () => {
    const stage = new Stage();
    stage.apply(a0, 0, stored([2n, 3n], [3, 4, 5, 6], { parentBlockHash: 1n }), removed([3n]));
    expect(stage.feed.size.waitingBlocks).toBe(2);
    stage.apply(a0, 1, removed([2n]));
    expect(stage.feed.size.waitingBlocks).toBe(0);
    expect(stage.feed.counters.unknownRemovals).toBe(0);
  });

  test("lets a chain that is stored again after the removal win in turn", () => {
    const stage = new Stage();
    const chain = stored([2n], [3, 4], { parentBlockHash: 1n });
    stage.apply(a0, 0, chain, removed([2n]), chain, stored([1n], [1, 2]));
    expect(stage.overlap(a0, [1, 2, 3, 4])).toBe(2);
  });
});

describe("a clearing of all blocks (llm-d-kv-cache#593, aibrix#2385)", () => {
  test("takes the entries of its worker and rank, and no others", () => {
    const stage = new Stage();
    for (const worker of [a0, a1, b0]) stage.apply(worker, 0, stored([1n], [1, 2]));
    stage.apply(a1, 1, ...decoded(["AllBlocksCleared"]));
    expect([a0, a1, b0].map((worker) => stage.overlap(worker, [1, 2]))).toEqual([1, 0, 1]);
    expect(stage.feed.size.blocks).toBe(2);
  });
});
