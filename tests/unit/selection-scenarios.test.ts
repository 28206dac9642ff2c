import { describe, expect, test } from "vitest";
import type { Booking, Selection, SelectRequest } from "../../src/selection/service.js";
import { prompt, SelectionStage } from "../support/selection-stage.js";

// What users of other routers have reported, with the outcome that they asked for. The numbers are theirs.

/** Engines that serve what the service books on them, first in first out, each at a rate of its own. */
class Engines {
  readonly counts = new Map<string, number>();
  readonly #queues = new Map<string, { id: string; tokens: number }[]>();
  longest = 0;

  constructor(
    readonly stage: SelectionStage,
    readonly tokensPerMs: (worker: string) => number,
  ) {}

  book(request: SelectRequest): Selection & Booking {
    const selection = this.stage.service.selectAndReserve(request);
    const name = `${selection.worker.workerId}/${selection.worker.dpRank}`;
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    queue.push({ id: selection.selectionId, tokens: selection.effectivePrefillTokens });
    this.longest = Math.max(this.longest, queue.length);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return selection;
  }

  /** Lets a millisecond pass. */
  work(): void {
    this.stage.clock.ms++;
    for (const [name, queue] of this.#queues) {
      let left = this.tokensPerMs(name);
      for (let head = queue[0]; head !== undefined; head = queue[0]) {
        head.tokens -= left;
        left = -head.tokens;
        if (head.tokens > 0) break;
        queue.shift();
        this.stage.service.prefillComplete(head.id);
        this.stage.service.free(head.id);
      }
    }
  }

  workAll(ms: number): void {
    for (let time = 0; time < ms; time++) this.work();
  }
}

/** How far the counts are from the mean of `workers`, as a part of it. */
function unevenness(counts: ReadonlyMap<string, number>, workers: number): number {
  const all = [...counts.values()];
  const mean = all.reduce((sum, count) => sum + count, 0) / workers;
  expect(all).toHaveLength(workers);
  return Math.max(...all.map((count) => Math.abs(count / mean - 1)));
}

describe("load is even", () => {
  test("over a thousand requests one after another, though every load is zero each time (smg 1714, sglang 15473)", () => {
    const engines = new Engines(new SelectionStage().add("a", "b", "c", "d"), () => 1_000);
    for (let own = 0; own < 1_000; own++) {
      engines.book({ tokenIds: prompt(4, own) });
      engines.work();
    }
    expect(unevenness(engines.counts, 4)).toBeLessThanOrEqual(0.15);
  });

  test("over eight ranks, though all prompts share a short prefix (tpu-inference 3307)", () => {
    const stage = new SelectionStage().add({ workerId: "a", dataParallelSize: 8 });
    const engines = new Engines(stage, () => 8);
    for (let own = 0; own < 800; own++) {
      engines.book({ tokenIds: prompt(125, own, 4) }); // 16 of 500 tokens in common
      engines.workAll(10);
    }
    expect(unevenness(engines.counts, 8)).toBeLessThanOrEqual(0.1);
  });

  test("and misses follow load, not the size of what a worker has cached: a slow one is spared (sglang 14305, 14532)", () => {
    const stage = new SelectionStage().add("slow", "b", "c");
    const engines = new Engines(stage, (name) => (name === "slow/0" ? 0.5 : 4));
    for (let own = 0; own < 600; own++) {
      engines.book({ tokenIds: prompt(10, own) });
      engines.workAll(8);
    }
    const count = (name: string) => engines.counts.get(name) as number;
    expect(count("slow/0")).toBeLessThan(0.4 * Math.min(count("b/0"), count("c/0")));
    expect(engines.longest).toBeLessThan(10); // no spiral
  });
});

test("one hot prefix at three times what a worker can do spills to others, whose later hits count (aibrix 842)", () => {
  const engines = new Engines(new SelectionStage().add("a", "b", "c", "d"), () => 16 / 3);
  let hits = 0;
  for (let own = 0; own < 400; own++) {
    hits += engines.book({ tokenIds: prompt(20, own, 16) }).overlapBlocks >= 16 ? 1 : 0; // 16 tokens of its own
    engines.work();
  }
  expect(engines.counts.size).toBe(4);
  expect(hits).toBeGreaterThan(0.9 * 400);
  expect(engines.longest).toBeLessThan(40);
});

test("a request that ends while it waits leaves no ghost behind (dynamo 10331)", () => {
  const stage = new SelectionStage().add("a");
  const { service } = stage;
  for (let at = 0; at < 5; at++) service.selectAndReserve({ tokenIds: prompt(2, at), selectionId: `q${at}` });
  for (const id of ["q1", "q3", "q4"]) service.free(id);
  expect(stage.loads()).toEqual({ a: { tokens: 16, blocks: 4, requests: 2 } });
  service.free("q0");
  service.free("q2");
  expect(stage.loads()).toEqual({ a: { tokens: 0, blocks: 0, requests: 0 } });
});

test("the answer to a booking is lost: the same call again gives the same booking, and one free ends it (dynamo 11155)", () => {
  const stage = new SelectionStage().add("a", "b");
  const request = { tokenIds: prompt(3), selectionId: "from-the-client" };
  const lost = stage.service.selectAndReserve(request);
  expect(stage.service.selectAndReserve(request)).toMatchObject({ worker: lost.worker, existing: true });
  expect(stage.service.free("from-the-client")).toBe(true);
  expect(stage.service.stats().bookings).toBe(0);
});
