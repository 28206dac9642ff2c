import { describe, expect, test } from "vitest";
import { decodeKvEvents, type KvStored } from "../../src/selection/events.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { Engine, type EngineOptions, encodeKvEvents, type KvMessage, type PassLoad } from "../../src/sim/engine.js";

const tokens = (first: number, count: number) => Uint32Array.from({ length: count }, (_, at) => first + at);

/** A token of a prompt takes 10 ms, one of an answer 100 ms. */
const PLAIN: EngineOptions = {
  numGpuBlocks: 100,
  blockSize: 4,
  timing: ({ prefillTokens, decodeRequests }) => ({ prefillMs: 10 * prefillTokens, decodeMs: decodeRequests && 100 }),
};

class Stage {
  readonly clock = new VirtualClock();
  readonly engine: Engine;
  readonly log: string[] = [];

  constructor(options: EngineOptions = {}) {
    this.engine = new Engine(this.clock, { ...PLAIN, ...options });
  }

  submit(name: string, promptTokens: Uint32Array, maxTokens = 3) {
    return this.engine.submit(
      { promptTokens, maxTokens },
      {
        onToken: (_token, index) => this.log.push(`${this.clock.now()} ${name}${index}`),
        onEnd: ({ reason, cachedTokens }) => this.log.push(`${this.clock.now()} ${name} ${reason} ${cachedTokens}`),
      },
    );
  }
}

describe("time", () => {
  test("passes follow each other, and what comes in one moment shares one", () => {
    const stage = new Stage();
    stage.submit("a", tokens(100, 6), 2);
    stage.submit("b", tokens(200, 4), 2);
    stage.clock.runAll();
    expect(stage.log).toEqual(["100 a0", "100 b0", "200 a1", "200 a length 0", "200 b1", "200 b length 0"]);
  });

  test("what comes during a pass waits for the next", () => {
    const stage = new Stage();
    stage.submit("a", tokens(100, 6), 2);
    stage.clock.advance(30);
    stage.submit("b", tokens(100, 6), 1);
    stage.clock.runAll();
    expect(stage.log).toEqual(["60 a0", "180 a1", "180 a length 0", "180 b0", "180 b length 4"]);
  });

  test("is divided by the speed-ups", () => {
    const stage = new Stage({ speedupRatio: 2, decodeSpeedupRatio: 5 });
    stage.submit("a", tokens(100, 6), 2);
    stage.clock.runAll();
    expect(stage.log).toEqual(["30 a0", "40 a1", "40 a length 0"]);
  });

  test("stands still with an infinite speed-up", () => {
    const stage = new Stage({ speedupRatio: Number.POSITIVE_INFINITY });
    stage.submit("a", tokens(100, 6));
    stage.clock.runAll();
    expect(stage.log.at(-1)).toBe("0 a length 0");
  });

  test("depends on what a pass computes", () => {
    const loads: PassLoad[] = [];
    const timing = (load: PassLoad) => {
      loads.push(load);
      return { prefillMs: 1, decodeMs: 1 };
    };
    const stage = new Stage({ timing, maxNumBatchedTokens: 6 });
    stage.submit("a", tokens(100, 5), 3);
    stage.submit("b", tokens(200, 3), 1);
    stage.clock.runAll();
    const fixed = { totalKvTokens: 400 };
    expect(loads).toEqual([
      {
        prefillRequests: 2,
        prefillTokens: 6,
        prefixTokens: 0,
        decodeRequests: 0,
        decodeContextTokens: 0,
        activeKvTokens: 12,
        ...fixed,
      },
      {
        prefillRequests: 1,
        prefillTokens: 2,
        prefixTokens: 1,
        decodeRequests: 1,
        decodeContextTokens: 6,
        activeKvTokens: 12,
        ...fixed,
      },
      {
        prefillRequests: 0,
        prefillTokens: 0,
        prefixTokens: 0,
        decodeRequests: 1,
        decodeContextTokens: 7,
        activeKvTokens: 8,
        ...fixed,
      },
    ]);
  });

  test("a timing that gives no time ends all requests, says so and leaves nothing behind", () => {
    const stage = new Stage({ timing: () => ({ prefillMs: Number.NaN, decodeMs: 0 }) });
    stage.submit("a", tokens(100, 6));
    expect(() => stage.clock.runAll()).toThrow("Expected the timing to give from 0 to 2147483647 ms, got NaN and 0.");
    expect([stage.log, stage.clock.pending]).toEqual([["0 a abort 0"], 0]);
  });
});

describe("an engine", () => {
  test("gives the same prompt the same tokens, whoever else is there", () => {
    const answers = [0, 3].map((others) => {
      const stage = new Stage();
      for (let other = 0; other < others; other++) stage.submit("x", tokens(1000 * other, 10));
      const answer: number[] = [];
      stage.engine.submit({ promptTokens: tokens(7, 9), maxTokens: 5 }, { onToken: (token) => answer.push(token) });
      stage.clock.runAll();
      return answer;
    });
    expect(answers[0]).toEqual(answers[1]);
    expect(new Set(answers[0]).size).toBe(5);
  });

  test("counts", () => {
    const stage = new Stage();
    stage.submit("a", tokens(100, 6), 2);
    stage.submit("b", tokens(100, 6), 2);
    const gone = stage.submit("c", tokens(300, 6));
    expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 3, submitted: 3 });
    stage.clock.step();
    expect(stage.engine.stats()).toMatchObject({ numRunning: 3, numWaiting: 0, numActiveBlocks: 5, passes: 1 });
    gone.abort();
    gone.abort();
    stage.clock.runAll();
    const { timeToFirstTokenSeconds, interTokenLatencySeconds, ...stats } = stage.engine.stats();
    expect(stats).toMatchObject({
      numRunning: 0,
      numActiveBlocks: 0,
      prefixCacheQueries: 18,
      prefixCacheHits: 4,
      promptTokens: 12,
      generationTokens: 4,
      finished: { stop: 0, length: 2, abort: 1 },
    });
    expect(timeToFirstTokenSeconds).toMatchObject({ count: 2, sum: 0.28 }); // 14 tokens of prompts
    expect(interTokenLatencySeconds).toMatchObject({ count: 2, sum: 0.2 });
    expect(timeToFirstTokenSeconds.counts[8]).toBe(2); // above 0.1 and up to 0.25
  });

  test("goes on when a listener throws, submits or aborts", () => {
    const stage = new Stage();
    const late = stage.submit("late", tokens(500, 4), 9);
    stage.engine.submit(
      { promptTokens: tokens(100, 4), maxTokens: 1 },
      {
        onEnd: () => {
          late.abort();
          stage.submit("next", tokens(100, 5), 1);
          throw new Error("mine");
        },
      },
    );
    expect(() => stage.clock.runAll()).toThrow("mine");
    stage.clock.runAll();
    expect(stage.log).toEqual(["80 late0", "80 late abort 0", "90 next0", "90 next length 4"]);
    expect(stage.engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 0, numActiveBlocks: 0 });
  });

  test("ends everything when it is disposed of, and takes nothing afterwards", () => {
    const stage = new Stage({ maxNumSeqs: 1 });
    stage.submit("a", tokens(100, 6));
    stage.submit("b", tokens(200, 6));
    stage.clock.advance(10);
    stage.engine.dispose();
    stage.engine.dispose();
    expect([stage.log, stage.clock.pending]).toEqual([["10 a abort 0", "10 b abort 0"], 0]);
    expect(() => stage.submit("c", tokens(1, 1))).toThrow("Expected an engine, got one that is closed.");
  });

  test.each([
    { numGpuBlocks: 0 },
    { blockSize: 4_097 },
    { maxNumSeqs: 0 },
    { maxNumBatchedTokens: 1.5 },
    { maxModelLen: -1 },
    { maxNumWaiting: Number.NaN },
    { speedupRatio: 0 },
    { decodeSpeedupRatio: -1 },
    { dpRank: 65_536 },
    { enablePrefixCaching: 1 as never },
  ])("refuses %o by name", (options) => {
    expect(() => new Engine(new VirtualClock(), options)).toThrow(`Expected ${Object.keys(options)[0]} to be `);
  });
});

describe("KV events", () => {
  const listen = (options: EngineOptions = {}) => {
    const stage = new Stage(options);
    const messages: KvMessage[] = [];
    stage.engine.onKvEvents((message) => messages.push(message));
    return { stage, messages };
  };

  test("tell blocks when the pass begins that fills them, chained to the block before", () => {
    const { stage, messages } = listen({ maxNumBatchedTokens: 8, dpRank: 3 });
    stage.submit("a", tokens(100, 14), 1);
    stage.clock.runAll();
    expect(messages.map(({ seq, ts, dpRank }) => [seq, ts, dpRank])).toEqual([
      [0, 0, 3],
      [1, 0.08, 3],
    ]);
    const [first, second] = messages.map(({ events }) => events[0]);
    expect(first).toMatchObject({ type: "stored", parentBlockHash: null, tokenIds: tokens(100, 8), blockSize: 4 });
    expect(second).toMatchObject({ type: "stored", tokenIds: tokens(108, 4) });
    expect(second).toHaveProperty("parentBlockHash", (first as KvStored).blockHashes[1]);
  });

  test("name a block once, however many copies there are, and again when the last has gone", () => {
    const { stage, messages } = listen({ numGpuBlocks: 4 });
    stage.submit("a", tokens(100, 8), 1);
    stage.submit("b", tokens(100, 8), 1);
    stage.submit("c", tokens(200, 16), 1);
    stage.clock.runAll();
    const kinds = messages.flatMap(({ events }) =>
      events.map((event) => (event.type === "cleared" ? event.type : `${event.type} ${event.blockHashes.length}`)),
    );
    expect(kinds).toEqual(["stored 2", "removed 2", "stored 4"]);
  });

  test.each([[{}], [{ loraName: "x" }], [{ cacheSalt: "s" }], [{ loraName: "x", cacheSalt: "s" }]])(
    "survive the wire with %o",
    (names) => {
      const { stage, messages } = listen({ numGpuBlocks: 3 });
      for (const first of [100, 200]) {
        stage.engine.submit({ promptTokens: tokens(first, 10), maxTokens: 1, ...names });
        stage.clock.runAll();
      }
      expect(messages.flatMap(({ events }) => events.map(({ type }) => type))).toEqual(["stored", "removed", "stored"]);
      for (const { seq, ...batch } of messages) {
        expect(decodeKvEvents(encodeKvEvents(batch))).toMatchObject(batch);
      }
    },
  );

  test("go to nobody who has stopped listening", () => {
    const stage = new Stage();
    const messages: KvMessage[] = [];
    stage.engine.onKvEvents((message) => messages.push(message))();
    stage.submit("a", tokens(100, 8), 1);
    stage.clock.runAll();
    expect(messages).toEqual([]);
  });
});
