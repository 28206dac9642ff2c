import { describe, expect, test } from "vitest";
import { a0, b0, lone, removed, Stage, stored } from "../model/kv-event-stage.js";

describe("an engine that was running before", () => {
  test("is asked for everything, and is live when it still has it", () => {
    const stage = new Stage();
    stage.apply(a0, 2, lone(3));
    expect(stage.requests.map(({ from }) => from)).toEqual([0]);
    for (const seq of [0, 1, 2]) stage.replay(a0, seq, lone(seq + 1));
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 3 });
    expect([1, 2, 3].map((n) => stage.overlap(a0, [n, n]))).toEqual([1, 1, 1]);
  });

  test("is untrusted when it does not, although what came since is indexed", () => {
    const stage = new Stage();
    stage.apply(a0, 2, lone(3));
    stage.feed.replayEnded(a0);
    expect(stage.state(a0)).toBe("untrusted");
    expect(stage.overlap(a0, [3, 3])).toBe(1);
    expect(stage.feed.counters.lostBatches).toBe(2);
  });

  test("is followed from the start after a reset, which asks for everything", () => {
    const stage = new Stage();
    stage.apply(a0, 0, lone(1));
    stage.feed.reset(a0);
    expect(stage.state(a0)).toBe("gap");
    expect(stage.index.size.entries).toBe(0);
    stage.replay(a0, 0, lone(1));
    stage.feed.replayEnded(a0);
    expect(stage.state(a0)).toBe("live");
    expect(stage.overlap(a0, [1, 1])).toBe(1);
  });
});

describe("a rank after a reset", () => {
  const reset = () => {
    const stage = new Stage();
    for (const seq of [0, 1]) stage.apply(a0, seq, lone(seq + 1));
    stage.feed.reset(a0);
    return stage;
  };

  test("has a gap until the replay has ended, for what it brings may not be all", () => {
    const stage = reset();
    stage.replay(a0, 0, lone(1));
    expect(stage.feed.status(a0)).toMatchObject({
      state: "gap",
      reason: "Batch 1 and perhaps more is missing, and a replay was asked for.",
    });
    stage.replay(a0, 1, lone(2));
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 2 });
    expect(stage.changes.map(({ state }) => state)).toEqual(["gap", "live"]);
  });

  test("is live as soon as a live batch follows on what the replay brought", () => {
    const stage = reset();
    for (const seq of [0, 1]) stage.replay(a0, seq, lone(seq + 1));
    expect(stage.state(a0)).toBe("gap");
    stage.apply(a0, 2, lone(3));
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 3 });
  });

  test("is untrusted when the replay brings nothing, until the engine's first batch shows that there was nothing", () => {
    const stage = reset();
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({
      state: "untrusted",
      reason: "What the engine holds is unknown since the reset: no replay brought it.",
    });
    stage.apply(a0, 0, lone(1));
    expect(stage.state(a0)).toBe("live");
  });

  test("is untrusted at once when nobody can ask for a replay", () => {
    const stage = new Stage({ onReplayNeeded: undefined });
    stage.apply(a0, 0, lone(1));
    stage.feed.reset(a0);
    expect(stage.state(a0)).toBe("untrusted");
    stage.apply(a0, 1, lone(2));
    expect(stage.feed.status(a0)).toMatchObject({ state: "untrusted" });
    expect(stage.feed.status(a0)?.reason).toContain("Batch 0 is lost");
  });
});

describe("a replay", () => {
  test("that brings a part is asked for again from where it stopped", () => {
    const stage = new Stage();
    stage.apply(a0, 0, lone(1));
    stage.apply(a0, 9, lone(10));
    stage.replay(a0, 1, lone(2));
    stage.feed.replayEnded(a0);
    expect(stage.requests.map(({ from }) => from)).toEqual([1, 2]);
    expect(stage.state(a0)).toBe("gap");
    stage.feed.replayEnded(a0);
    expect(stage.state(a0)).toBe("untrusted");
  });

  test("may be answered from inside the callback", () => {
    const stage: Stage = new Stage({
      onReplayNeeded: ({ worker, from }) => {
        for (let seq = from; seq < 5; seq++) stage.replay(worker, seq, lone(seq + 1));
        stage.feed.replayEnded(worker);
      },
    });
    stage.apply(a0, 4, lone(5));
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 5 });
  });

  test("may be declined from inside the callback, for any number of gaps", () => {
    let asked = 0;
    const stage: Stage = new Stage({
      onReplayNeeded: ({ worker }) => {
        asked++;
        if (asked > 1) stage.feed.replayEnded(worker);
      },
    });
    for (let seq = 1; seq < 12_000; seq += 2) stage.apply(a0, seq);
    stage.feed.replayEnded(a0);
    expect(stage.feed.status(a0)).toMatchObject({ state: "untrusted", next: 12_000 });
  });

  test("that nobody asked for, or of an unknown worker, has no end", () => {
    const stage = new Stage();
    stage.apply(a0, 0, lone(1));
    stage.feed.replayEnded(a0);
    stage.feed.replayEnded(b0);
    stage.feed.reset(b0);
    expect(stage.feed.statuses().map(({ state }) => state)).toEqual(["live"]);
  });

  test("of batches that the index refuses stays open, and goes on once it takes them", () => {
    const stage = new Stage();
    const store = stage.index.store.bind(stage.index);
    stage.apply(a0, 1, lone(2));
    stage.index.store = () => {
      throw new Error("full");
    };
    expect(() => stage.replay(a0, 0, lone(1))).toThrow("full");
    stage.index.store = store;
    stage.replay(a0, 0, lone(1));
    expect(stage.feed.status(a0)).toMatchObject({ state: "live", next: 2 });
    expect([1, 2].map((n) => stage.overlap(a0, [n, n]))).toEqual([1, 1]);
  });
});

describe("an index that refuses", () => {
  /** Lets the index take so many chains, and no more. */
  function limit(stage: Stage, stores: number): () => void {
    const store = stage.index.store.bind(stage.index);
    let left = stores;
    stage.index.store = (...args: Parameters<typeof store>) => {
      if (left-- <= 0) throw new Error("full");
      store(...args);
    };
    return () => {
      stage.index.store = store;
    };
  }

  test("a live batch leaves a gap, which says why, and takes the batch when it comes again", () => {
    const stage = new Stage();
    const mend = limit(stage, 0);
    expect(() => stage.apply(a0, 0, lone(1))).toThrow("full");
    expect(stage.feed.status(a0)).toMatchObject({
      state: "gap",
      reason: "Batch 0 is missing: the index refused it.",
      next: 0,
    });
    mend();
    stage.apply(a0, 0, lone(1));
    expect(stage.state(a0)).toBe("live");
    expect(stage.overlap(a0, [1, 1])).toBe(1);
  });

  test.each([1, 2, 3])("chain %i of those that waited for a parent loses none of them", (stores) => {
    const stage = new Stage();
    const orphans = [2, 3].map((n) => stored([BigInt(n)], [n, n], { parentBlockHash: 1n }));
    const leaf = stored([4n], [4, 4], { parentBlockHash: 3n });
    stage.apply(a0, 0, ...orphans, leaf);
    const mend = limit(stage, stores);
    expect(() => stage.apply(a0, 1, lone(1))).toThrow("full");
    mend();
    stage.replay(a0, 1, lone(1));
    expect(stage.state(a0)).toBe("live");
    expect(stage.overlap(a0, [1, 1, 2, 2])).toBe(2);
    expect(stage.overlap(a0, [1, 1, 3, 3, 4, 4])).toBe(3);
    expect(stage.feed.size).toMatchObject({ blocks: 4, waitingBlocks: 0 });
  });

  test("a part of a chain can forget the part that it took", () => {
    const stage = new Stage();
    const chain = stored([2n, 3n, 4n], [2, 2, 3, 3, 4, 4], { parentBlockHash: 1n });
    stage.apply(a0, 0, chain, removed([3n])); // so that the chain is stored in two parts
    const mend = limit(stage, 2);
    expect(() => stage.apply(a0, 1, lone(1))).toThrow("full");
    mend();
    stage.replay(a0, 1, removed([2n]), lone(1));
    expect(stage.index.size.entries).toBe(2); // 1 and 4
    expect(stage.overlap(a0, [1, 1, 2, 2])).toBe(1);
  });
});
