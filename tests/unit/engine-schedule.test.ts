import { describe, expect, test } from "vitest";
import { EngineError, type KvrouteError } from "../../src/errors.js";
import type { SchedulerOptions } from "../../src/sim/engine/options.js";
import { Scheduler } from "../../src/sim/engine/scheduler.js";
import type { EngineRequest, Sequence } from "../../src/sim/engine/sequence.js";

// Blocks of 4 tokens; prompts are runs of numbers, so that what begins with the same number shares blocks.
const tokens = (first: number, count: number) => Uint32Array.from({ length: count }, (_, at) => first + at);

class Stage {
  readonly scheduler: Scheduler;
  readonly #names = new Map<Sequence, string>();
  readonly #sequences = new Map<string, Sequence>();

  constructor(options: SchedulerOptions = {}) {
    this.scheduler = new Scheduler({ numGpuBlocks: 100, blockSize: 4, ...options }, (_seed, index) => 9_000 + index);
  }

  add(name: string, promptTokens: Uint32Array, request: Partial<EngineRequest> = {}): void {
    const sequence = this.scheduler.add({ promptTokens, maxTokens: 10, ...request });
    this.#names.set(sequence, name);
    this.#sequences.set(name, sequence);
  }

  abort(name: string): boolean {
    return this.scheduler.abort(this.get(name));
  }

  get(name: string): Sequence {
    return this.#sequences.get(name) as Sequence;
  }

  /** Begins a pass, and says what it computes: "a:8" for eight tokens of a prompt, "a+1" for a token of an answer. */
  begin(): string {
    const pass = this.scheduler.schedule() ?? [];
    return pass.map((it) => `${this.#names.get(it.sequence)}${it.isPrefill ? ":" : "+"}${it.tokens}`).join(" ");
  }

  /** Ends the pass, and says who got a token, and why who ended. */
  end(): string {
    const outcomes = this.scheduler.finish().filter(({ token, reason }) => token !== null || reason !== null);
    return outcomes
      .map(({ sequence, reason }) => `${this.#names.get(sequence)}${reason ? ` ${reason}` : ""}`)
      .join(", ");
  }

  pass(): string {
    const computed = this.begin();
    return `${computed} -> ${this.end()}`;
  }

  get waiting(): string {
    return this.scheduler.waiting.map((sequence) => this.#names.get(sequence)).join(" ");
  }

  /** Blocks that are held, and blocks that are cached besides. */
  get blocks(): [active: number, inactive: number] {
    const { pool } = this.scheduler.cache;
    return [pool.numActive, pool.numInactive];
  }
}

describe("the budget of a pass", () => {
  test("goes to those that run first, then to those that wait, in order", () => {
    const stage = new Stage({ maxNumBatchedTokens: 10 });
    stage.add("a", tokens(100, 6));
    stage.add("b", tokens(200, 8));
    stage.add("c", tokens(300, 3));
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual([
      "a:6 b:4 -> a",
      "a+1 b:4 c:3 -> a, b, c",
      "a+1 b+1 c+1 -> a, b, c",
    ]);
  });

  test("spreads a long prompt over passes, and its first token comes with the last", () => {
    const stage = new Stage({ maxNumBatchedTokens: 8 });
    stage.add("a", tokens(100, 20), { maxTokens: 1 });
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["a:8 -> ", "a:8 -> ", "a:4 -> a length"]);
  });

  test("without chunked prefill a prompt waits for a pass that has room for all of it", () => {
    const stage = new Stage({ maxNumBatchedTokens: 8, enableChunkedPrefill: false });
    stage.add("a", tokens(100, 6), { maxTokens: 2 });
    stage.add("b", tokens(200, 3));
    expect([stage.pass(), stage.pass()]).toEqual(["a:6 -> a", "a+1 b:3 -> a length, b"]);
  });

  test("at most maxNumSeqs run", () => {
    const stage = new Stage({ maxNumSeqs: 2 });
    for (const [at, name] of ["a", "b", "c"].entries()) stage.add(name, tokens(100 * at, 4), { maxTokens: 2 });
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual([
      "a:4 b:4 -> a, b",
      "a+1 b+1 -> a length, b length",
      "c:4 -> c",
    ]);
  });
});

describe("prefix caching", () => {
  test("a full hit computes its last block again", () => {
    const stage = new Stage();
    stage.add("a", tokens(100, 8), { maxTokens: 1 });
    stage.add("b", tokens(100, 8), { maxTokens: 1 });
    expect(stage.pass()).toBe("a:8 b:4 -> a length, b length"); // in the same pass, as in vLLM
    expect(stage.scheduler).toMatchObject({ prefixQueries: 16, prefixHits: 4 });
    expect(stage.blocks).toEqual([0, 3]); // the last block stands there twice
  });

  test("one token beyond the full blocks reuses all of them", () => {
    const stage = new Stage();
    stage.add("a", tokens(100, 8), { maxTokens: 1 });
    stage.pass();
    stage.add("b", tokens(100, 9), { maxTokens: 1 });
    expect(stage.pass()).toBe("b:1 -> b length");
  });

  test("the next turn reuses the blocks of the answer", () => {
    const stage = new Stage();
    stage.add("a", tokens(100, 6), { maxTokens: 3 });
    for (let pass = 0; pass < 3; pass++) stage.pass();
    stage.add("b", Uint32Array.from([...tokens(100, 6), 9_000, 9_001, 9_002, 1, 2]), { maxTokens: 1 });
    expect(stage.pass()).toBe("b:3 -> b length");
  });

  test("other adapters and salts share nothing", () => {
    const stage = new Stage();
    const prompt = tokens(100, 9);
    for (const request of [{}, { loraName: "x" }, { cacheSalt: "x" }, { loraName: "x", cacheSalt: "x" }]) {
      stage.add("a", prompt, { maxTokens: 1, ...request });
      expect(stage.pass()).toBe("a:9 -> a length");
    }
  });

  test("switched off, nothing is kept and nothing told", () => {
    const stage = new Stage({ enablePrefixCaching: false });
    for (const name of ["a", "b"]) {
      stage.add(name, tokens(100, 9), { maxTokens: 1 });
      expect(stage.pass()).toBe(`${name}:9 -> ${name} length`);
    }
    expect(stage.blocks).toEqual([0, 0]);
    expect(stage.scheduler.cache.takeEvents()).toEqual([]);
    expect(stage.scheduler.prefixQueries).toBe(0);
  });
});

describe("admission", () => {
  test("waits until the whole sequence fits, in order", () => {
    const stage = new Stage({ numGpuBlocks: 5, maxNumBatchedTokens: 8 });
    stage.add("a", tokens(100, 16), { maxTokens: 1 });
    stage.add("b", tokens(200, 8), { maxTokens: 1 });
    stage.add("c", tokens(300, 4), { maxTokens: 1 });
    // When `a` has its four blocks, `c` would fit, but `b` stands before it.
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["a:8 -> ", "a:8 -> a length", "b:8 -> b length"]);
    expect(stage.pass()).toBe("c:4 -> c length");
  });

  test("counts the blocks that others hold as shared", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    stage.add("a", tokens(100, 12));
    stage.pass();
    stage.add("b", tokens(100, 13), { maxTokens: 1 });
    // a takes the fourth block for its answer first, and so b waits.
    expect([stage.pass(), stage.waiting]).toEqual(["a+1 -> a", "b"]);
    stage.abort("a");
    expect(stage.pass()).toBe("b:1 -> b length");
  });

  test("never preempts anybody", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    stage.add("a", tokens(100, 12));
    stage.pass();
    stage.add("b", tokens(200, 8));
    expect([stage.pass(), stage.scheduler.preemptions]).toEqual(["a+1 -> a", 0]);
  });

  test("a prompt that fills the cache is taken and one token more refused, which changes nothing", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    expect(() => stage.add("b", tokens(100, 17))).toThrow(
      new EngineError(
        "KVROUTE_ENGINE_TOO_LONG",
        "Expected a prompt of at most 16 tokens, which is what the engine can hold, got 17.",
      ),
    );
    expect(stage.scheduler.numWaiting).toBe(0);
    stage.add("a", tokens(100, 16));
    expect(stage.pass()).toBe("a:16 -> a length");
  });

  test("the limit is maxModelLen where that is less, and the budget where prompts are not cut", () => {
    expect(new Stage({ maxModelLen: 7 }).scheduler.limits.maxModelLen).toBe(7);
    expect(new Stage({ maxNumBatchedTokens: 9 }).scheduler.limits.maxModelLen).toBe(400);
    const uncut = new Stage({ maxNumBatchedTokens: 9, enableChunkedPrefill: false });
    expect(uncut.scheduler.limits.maxModelLen).toBe(9);
  });

  test("the line has maxNumWaiting places", () => {
    const stage = new Stage({ maxNumWaiting: 1 });
    stage.add("a", tokens(100, 4));
    expect(() => stage.add("b", tokens(200, 4))).toThrow("Expected at most 1 waiting requests, got one more.");
    stage.pass();
    stage.add("b", tokens(200, 4));
    expect(stage.waiting).toBe("b");
  });

  test.each([
    [{ promptTokens: new Uint32Array(0) }, "KVROUTE_ARGUMENT_RANGE"],
    [{ promptTokens: [1, 2] as never }, "KVROUTE_ARGUMENT_TYPE"],
    [{ maxTokens: -1 }, "KVROUTE_ARGUMENT_RANGE"],
    [{ maxTokens: 1.5 }, "KVROUTE_ARGUMENT_RANGE"],
    [{ answer: new Uint32Array(0) }, "KVROUTE_ARGUMENT_RANGE"],
  ])("a request with %o is refused", (request, code) => {
    const stage = new Stage();
    expect(() => stage.add("a", tokens(1, 1), request)).toThrow(expect.objectContaining({ code }) as KvrouteError);
    expect(stage.scheduler.numWaiting).toBe(0);
  });
});

describe("preemption", () => {
  test("takes the last that came, which starts anew before all that wait", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    stage.add("a", tokens(100, 8));
    stage.add("b", tokens(200, 8));
    stage.add("c", tokens(300, 1));
    expect(stage.pass()).toBe("a:8 b:8 -> a, b");
    expect(stage.pass()).toBe("a+1 -> a"); // a needs a third block
    expect([stage.waiting, stage.scheduler.preemptions]).toEqual(["b c", 1]);
    expect(stage.get("b")).toMatchObject({ computed: 0, lease: [], outputLength: 1, preemptions: 1 });
    // b has 9 tokens now, for which it needs three blocks; one is free.
    expect([stage.pass(), stage.waiting]).toEqual(["a+1 -> a", "b c"]);
  });

  test("recomputes what is no longer cached, answer included, and goes on where it was", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    stage.add("a", tokens(100, 8), { maxTokens: 2 });
    stage.add("b", tokens(200, 8), { maxTokens: 3 });
    expect([stage.pass(), stage.pass()]).toEqual(["a:8 b:8 -> a, b", "a+1 -> a length"]);
    // Of b's two blocks the second was evicted for a, as it was released first.
    expect(stage.pass()).toBe("b:5 -> b");
    expect(stage.pass()).toBe("b+1 -> b length");
    expect(stage.scheduler).toMatchObject({ prefixQueries: 16, prefixHits: 0 }); // the second admission does not count
    expect(stage.blocks[0]).toBe(0);
  });

  test("the answer that is computed again counts as prefill", () => {
    const stage = new Stage({ numGpuBlocks: 4, enablePrefixCaching: false, maxNumBatchedTokens: 8 });
    stage.add("a", tokens(100, 4), { maxTokens: 6 });
    stage.add("b", tokens(200, 8), { maxTokens: 3 });
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["a:4 b:4 -> a", "a+1 b:4 -> a, b", "a+1 -> a"]);
    expect([stage.waiting, stage.scheduler.numWaiting]).toEqual(["b", 1]); // with a token of its answer
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["a+1 -> a", "a+1 -> a", "a+1 -> a length"]);
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["b:8 -> ", "b:1 -> b", "b+1 -> b length"]);
  });

  test("who is the last preempts himself", () => {
    const stage = new Stage({ numGpuBlocks: 4 });
    stage.add("a", tokens(100, 7));
    stage.add("b", tokens(200, 8));
    expect([stage.pass(), stage.pass(), stage.waiting]).toEqual(["a:7 b:8 -> a, b", "a+1 -> a", "b"]);
  });

  test("several that are preempted keep their order", () => {
    const stage = new Stage({ numGpuBlocks: 4, enablePrefixCaching: false });
    stage.add("a", tokens(100, 8));
    for (const [at, name] of ["b", "c"].entries()) stage.add(name, tokens(200 + 100 * at, 4));
    expect(stage.pass()).toBe("a:8 b:4 c:4 -> a, b, c");
    expect([stage.pass(), stage.waiting]).toEqual(["a+1 -> a", "b c"]);
  });

  test("an answer ends when the cache can hold no more of it", () => {
    const stage = new Stage({ numGpuBlocks: 2 });
    stage.add("a", tokens(100, 6));
    expect([stage.pass(), stage.pass(), stage.pass()]).toEqual(["a:6 -> a", "a+1 -> a length", " -> "]);
    expect(stage.blocks).toEqual([0, 1]);
  });
});

describe("an end", () => {
  test("comes with the last token of a given answer, or after maxTokens", () => {
    const stage = new Stage();
    stage.add("a", tokens(100, 4), { answer: Uint32Array.of(1, 2) });
    stage.add("b", tokens(200, 4), { answer: Uint32Array.of(1, 2), maxTokens: 1 });
    stage.add("c", tokens(300, 4), { maxTokens: 0 });
    expect([stage.pass(), stage.pass()]).toEqual(["a:4 b:4 c:4 -> a, b length, c stop", "a+1 -> a stop"]);
  });

  test("releases a sequence's blocks from the last to the first", () => {
    const stage = new Stage({ numGpuBlocks: 3 });
    stage.add("a", tokens(100, 12), { maxTokens: 1 });
    stage.pass();
    stage.add("b", tokens(200, 4), { maxTokens: 1 });
    stage.pass();
    stage.add("c", tokens(100, 12), { maxTokens: 1 });
    expect(stage.pass()).toBe("c:4 -> c length"); // the first two blocks of a are still there
  });

  test("by abort comes at once to who waits, and with the pass to who runs in it", () => {
    const stage = new Stage({ maxNumSeqs: 1 });
    stage.add("a", tokens(100, 4));
    stage.add("b", tokens(200, 4));
    stage.begin();
    expect([stage.abort("b"), stage.waiting]).toEqual([true, ""]);
    expect([stage.abort("a"), stage.blocks[0], stage.end(), stage.blocks[0]]).toEqual([false, 1, "a abort", 0]);
    expect(stage.abort("a")).toBe(true);
  });

  test("by abort between passes comes at once", () => {
    const stage = new Stage();
    stage.add("a", tokens(100, 4));
    stage.pass();
    expect([stage.abort("a"), stage.blocks[0], stage.begin()]).toEqual([true, 0, ""]);
  });
});
