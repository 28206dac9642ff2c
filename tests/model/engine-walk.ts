import { expect } from "vitest";
import { PrefixIndex } from "../../src/core/prefix-index.js";
import { KvEventFeed } from "../../src/selection/events.js";
import { Scheduler } from "../../src/sim/engine/scheduler.js";
import type { Sequence } from "../../src/sim/engine/sequence.js";
import { NaiveEngine, type NaiveOptions, type NaiveRequest } from "./engine-naive.js";

export type Step =
  | { readonly kind: "add"; readonly prompt: readonly number[]; readonly maxTokens: number }
  | { readonly kind: "abort"; readonly which: number }
  | { readonly kind: "pass"; readonly abortWithin?: number | undefined };

const WORKER = { workerId: "w", dpRank: 0 };

// What is answered to a prompt hangs on its first token alone, so that answers come again in later prompts.
const answerToken = (firstToken: number, index: number) => (7 * firstToken + index) % 5;

/** The scheduler, the naive engine, and an index that follows the events, all led through the same steps. */
export class EngineWalk {
  readonly scheduler: Scheduler;
  readonly #naive: NaiveEngine;
  readonly #options: NaiveOptions;
  readonly #index = new PrefixIndex();
  readonly #feed: KvEventFeed;
  readonly #ids = new Map<Sequence, number>();
  readonly #live = new Map<number, Sequence>();
  #added = 0;
  #ended = 0;
  #messages = 0;

  constructor(options: NaiveOptions) {
    this.#options = options;
    // The seed is a hash of the prompt: the first token is found again by the sequence that is asked.
    this.scheduler = new Scheduler(options, (seed, index) => answerToken(this.#firstTokens.get(seed) as number, index));
    this.#naive = new NaiveEngine(options, ({ tokens, promptLength }: NaiveRequest) =>
      answerToken(tokens[0] as number, tokens.length - promptLength),
    );
    this.#feed = new KvEventFeed({ index: this.#index, blockSize: options.blockSize });
  }

  readonly #firstTokens = new Map<bigint, number>();

  run(steps: readonly Step[]): void {
    for (const step of steps) this.step(step);
  }

  step(step: Step): void {
    if (step.kind === "add") this.#add(step.prompt, step.maxTokens);
    else if (step.kind === "abort") this.#abort(step.which);
    else this.#pass(step.abortWithin);
    this.check();
  }

  /** Passes until nobody is left, and sees that nothing is held. */
  drain(): void {
    for (let passes = 0; this.#live.size > 0; passes++) {
      if (passes > 10_000) throw new Error(`${this.#live.size} requests do not come to an end.`);
      this.#pass(undefined);
      this.check();
    }
    const { pool } = this.scheduler.cache;
    expect([pool.numActive, pool.numActiveRefs]).toEqual([0, 0]);
    expect([this.scheduler.running.length, this.scheduler.numWaiting]).toEqual([0, 0]);
    expect(this.#ended).toBe(this.#added);
  }

  #add(prompt: readonly number[], maxTokens: number): void {
    if (prompt.length > this.scheduler.limits.maxModelLen) {
      expect(() => this.scheduler.add({ promptTokens: Uint32Array.from(prompt), maxTokens })).toThrow(
        "Expected a prompt",
      );
      return;
    }
    const sequence = this.scheduler.add({ promptTokens: Uint32Array.from(prompt), maxTokens });
    const id = this.#added++;
    this.#firstTokens.set(sequence.seed, prompt[0] as number);
    this.#ids.set(sequence, id);
    this.#live.set(id, sequence);
    this.#naive.add(id, prompt, maxTokens);
  }

  #abort(which: number): void {
    const ids = [...this.#live.keys()];
    if (ids.length === 0) return;
    const id = ids[which % ids.length] as number;
    this.#naive.abort(id);
    if (this.scheduler.abort(this.#live.get(id) as Sequence)) this.#end(id);
  }

  #pass(abortWithin: number | undefined): void {
    const pass = this.scheduler.schedule() ?? [];
    expect(pass.map(({ sequence, tokens }) => [this.#ids.get(sequence), tokens])).toEqual(this.#naive.schedule());
    const tokens = pass.reduce((sum, entry) => sum + entry.tokens, 0);
    expect(tokens).toBeLessThanOrEqual(this.#options.maxNumBatchedTokens);
    if (this.#live.size > 0) expect(tokens).toBeGreaterThan(0); // somebody always gets on
    this.#follow();
    if (abortWithin !== undefined) this.#abort(abortWithin);
    const outcomes = this.scheduler.finish();
    const { got, ended } = this.#naive.finish();
    const idsOf = (some: typeof outcomes) => some.map(({ sequence }) => this.#ids.get(sequence) as number);
    expect(idsOf(outcomes.filter(({ token }) => token !== null))).toEqual(got);
    expect(idsOf(outcomes.filter(({ reason }) => reason !== null))).toEqual(ended);
    for (const id of ended) this.#end(id);
  }

  #end(id: number): void {
    this.#live.delete(id);
    this.#ended++;
  }

  #follow(): void {
    const events = this.scheduler.cache.takeEvents();
    if (events.length > 0) this.#feed.apply(WORKER, { seq: this.#messages++, events });
  }

  /** Sees that blocks, tokens and requests are all accounted for, and that both engines stand alike. */
  check(): void {
    const { pool } = this.scheduler.cache;
    const { running, waiting } = this.scheduler;
    const leases = running.flatMap(({ lease }) => lease);
    expect(pool.numActiveRefs).toBe(leases.length);
    expect(pool.numActive).toBe(new Set(leases).size);
    expect(pool.numActive).toBe(this.#naive.active);
    expect(running.length + waiting.length + this.#ended).toBe(this.#added);
    expect(running.length).toBeLessThanOrEqual(this.#options.maxNumSeqs);
    expect(running.map((it) => this.#ids.get(it))).toEqual(this.#naive.running.map(({ id }) => id));
    expect(waiting.map((it) => this.#ids.get(it))).toEqual(this.#naive.waiting.map(({ id }) => id));
    for (const { lease, computed, length } of running) {
      expect(lease.length).toBe(Math.ceil(computed / this.#options.blockSize));
      expect(computed).toBeLessThanOrEqual(length);
    }
    for (const { lease, computed } of waiting) expect([lease, computed]).toEqual([[], 0]);
    this.#checkIndex();
  }

  /** Sees that the index knows as many blocks as are cached, and of each sequence as many as the pool has. */
  #checkIndex(): void {
    const { pool } = this.scheduler.cache;
    expect(this.#index.size.entries).toBe(this.#naive.cached.size);
    for (const sequence of this.#live.values()) {
      const hashes = sequence.hashes(Math.floor(sequence.length / this.#options.blockSize));
      if (hashes.length === 0) continue;
      const [best] = this.#index.overlap(hashes);
      expect(best?.blocks ?? 0).toBe(pool.matchPrefix(hashes).resident);
    }
  }
}
