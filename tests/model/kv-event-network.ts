import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { hashTokens } from "../../src/core/token-hash.js";
import { KvEventFeed } from "../../src/selection/events.js";
import { BLOCK, FakeEngine, type HashForm, type Order, type Prompt, type Published } from "./kv-event-engine.js";
import { type IndexUnderTest, NaiveIndex } from "./kv-event-index.js";

/** What happens next, and to which of the two engines. */
export type Step = { readonly engine: 0 | 1 } & (
  | { readonly do: "admit"; readonly prompt: Prompt }
  | { readonly do: "evict"; readonly from: number; readonly count: number }
  | { readonly do: "remove unheld"; readonly prompt: Prompt }
  | { readonly do: "clear" }
  | { readonly do: "restart"; readonly lost: number; readonly stale: number }
  | { readonly do: "reset" }
  | { readonly do: "publish"; readonly fate: "arrives" | "is lost" | "is late" | "arrives twice" }
  | { readonly do: "catch up"; readonly at: number }
  | { readonly do: "replay"; readonly lost: number; readonly breaks: boolean }
);

/** How the two engines are told apart: as ranks of one worker, both registered as rank 0, or as workers. */
export type Kinship = "ranks" | "workers";

const WORKERS: Record<Kinship, readonly [WorkerWithDpRank, WorkerWithDpRank]> = {
  ranks: [
    { workerId: "w", dpRank: 0 },
    { workerId: "w", dpRank: 1 },
  ],
  workers: [
    { workerId: "v", dpRank: 1 },
    { workerId: "w", dpRank: 1 },
  ],
};

/** What two engines are like. */
export interface Setting {
  readonly kinship: Kinship;
  readonly forms: readonly [HashForm, HashForm];
  readonly orders: readonly [Order, Order];
}

/** Two engines, a feed that follows them, and everything that can go wrong in between. */
export class Network {
  readonly index: IndexUnderTest;
  readonly feed: KvEventFeed;
  readonly #kinship: Kinship;
  readonly #workers: readonly [WorkerWithDpRank, WorkerWithDpRank];
  readonly #createIndex: () => IndexUnderTest;
  readonly engines: readonly FakeEngine[];
  /** Messages under way, by engine. */
  readonly #late: Published[][] = [[], []];
  /** The highest number of each engine that arrived since its start, or since the reset of the feed. */
  readonly #highest = [-1, -1];
  /** Replays that were asked for and not answered, by engine. */
  readonly #wanted = new Map<number, number>();

  constructor(
    { kinship, forms, orders }: Setting,
    options: { keep?: number; maxBufferedBytesPerRank?: number; createIndex?: () => IndexUnderTest } = {},
  ) {
    const { keep, createIndex = () => new NaiveIndex(), ...limits } = options;
    this.#createIndex = createIndex;
    this.index = createIndex();
    this.#kinship = kinship;
    this.#workers = WORKERS[kinship];
    this.engines = forms.map((form, at) => new FakeEngine(form, orders[at] as Order, keep));
    this.feed = new KvEventFeed({
      ...{ index: this.index, blockSize: BLOCK },
      ...limits,
      onReplayNeeded: ({ worker, from }) => this.#wanted.set(this.#engineOf(worker), from),
    });
  }

  take(step: Step): void {
    const engine = this.engines[step.engine] as FakeEngine;
    if (step.do === "admit") engine.admit(step.prompt);
    else if (step.do === "evict") engine.evict(step.from, step.count);
    else if (step.do === "remove unheld") engine.removeUnheld(step.prompt);
    else if (step.do === "clear") engine.clear();
    else if (step.do === "restart") this.#restart(step.engine, step.lost, step.stale);
    else if (step.do === "reset") this.#reset(step.engine);
    else if (step.do === "publish") this.#publish(step.engine, step.fate);
    else if (step.do === "replay") this.#replay(step.engine, step.lost, step.breaks);
    else if (step.do === "catch up") this.#catchUp(step.engine, step.at);
  }

  /** Delivers all that is under way, and one more message of each engine: without it, nobody knows of a lost last one. */
  settle(): void {
    for (const engine of [0, 1] as const) {
      while ((this.#late[engine] as Published[]).length > 0) this.#catchUp(engine, 0);
      this.#publish(engine, "arrives", true);
      for (let round = 0; this.#wanted.has(engine); round++) {
        if (round > 1_000) throw new Error("The feed asks for replays without an end.");
        this.#replay(engine, 0, false);
      }
    }
  }

  states(): string[] {
    return this.#workers.map((worker) => this.feed.status(worker)?.state ?? "unknown");
  }

  /** Counts the leading blocks of a prompt that the index says an engine holds. */
  indexed(engine: 0 | 1, { tokens, loraName, cacheSalt }: Prompt): number {
    const names = {
      ...(loraName === undefined ? {} : { loraName }),
      ...(cacheSalt === undefined ? {} : { cacheSalt }),
    };
    const { sequence } = hashTokens(Uint32Array.from(tokens), { blockSize: BLOCK, ...names });
    return this.index.overlapOf(this.#workers[engine], sequence);
  }

  /** What the index holds when the streams are applied in order, one after the other. */
  inOrder(): IndexUnderTest {
    const index = this.#createIndex();
    const feed = new KvEventFeed({ index, blockSize: BLOCK });
    this.engines.forEach((engine, at) => {
      for (const message of engine.history) feed.apply(this.#workers[at] as WorkerWithDpRank, message);
    });
    return index;
  }

  #engineOf({ workerId, dpRank }: WorkerWithDpRank): 0 | 1 {
    const at = this.#workers.findIndex((worker) => worker.workerId === workerId && worker.dpRank === dpRank);
    if (at < 0) throw new Error(`The feed speaks of an unknown worker, ${workerId} rank ${dpRank}.`);
    return at as 0 | 1;
  }

  #publish(engine: 0 | 1, fate: (Step & { do: "publish" })["fate"], all = false): void {
    const message = (this.engines[engine] as FakeEngine).publish(all);
    if (fate === "is late") (this.#late[engine] as Published[]).push(message);
    if (fate === "arrives" || fate === "arrives twice") this.#deliver(engine, message);
    if (fate === "arrives twice") this.#deliver(engine, message);
  }

  #catchUp(engine: 0 | 1, at: number): void {
    const late = this.#late[engine] as Published[];
    const [message] = late.splice(at % Math.max(1, late.length), 1);
    if (message !== undefined) this.#deliver(engine, message);
  }

  #deliver(engine: 0 | 1, message: Published, replayed = false): void {
    const { workerId, dpRank } = this.#workers[engine];
    const source = this.#kinship === "ranks" ? { workerId, dpRank: 0 } : { workerId, dpRank };
    this.#highest[engine] = Math.max(this.#highest[engine] as number, message.seq);
    this.feed.apply(source, { ...message, dpRank: this.#kinship === "ranks" ? dpRank : null, replayed });
  }

  /**
   * Answers a replay, if one is wanted, of which `lost` messages do not arrive: those behind the first, dropped by a full
   * queue, or the last ones and the end marker, when the connection breaks. Then the caller asks anew.
   */
  #replay(engine: 0 | 1, lost: number, breaks: boolean): void {
    const from = this.#wanted.get(engine);
    if (from === undefined) return;
    const worker = this.#workers[engine];
    const all = (this.engines[engine] as FakeEngine).replay(from);
    const arriving = breaks ? all.slice(0, all.length - lost) : all.filter((_, at) => at === 0 || at > lost);
    if (!breaks) this.#wanted.delete(engine);
    for (const message of arriving) this.#deliver(engine, message, true);
    if (breaks) this.#wanted.set(engine, this.feed.status(worker)?.next ?? 0);
    else this.feed.replayEnded(worker);
  }

  #reset(engine: 0 | 1): void {
    this.#highest[engine] = -1;
    this.feed.reset(this.#workers[engine]);
  }

  /**
   * Restarts an engine: its sockets close, its first messages are `lost`, as far as the next one still shows that numbers
   * have gone back, and behind that one come the last `stale` messages of a replay from before. If nothing came since a
   * reset, nothing shows a restart, and a replay from before must be dropped by the caller.
   */
  #restart(engine: 0 | 1, lost: number, stale: number): void {
    const before =
      stale === 0 || this.#highest[engine] === -1 ? [] : (this.engines[engine] as FakeEngine).replay(0).slice(-stale);
    this.#late[engine] = [];
    if (this.#wanted.delete(engine)) this.feed.replayEnded(this.#workers[engine]);
    (this.engines[engine] as FakeEngine).restart();
    const losses = Math.min(lost, Math.max(0, this.#highest[engine] as number));
    this.#highest[engine] = -1;
    for (let message = 0; message < losses; message++) this.#publish(engine, "is lost");
    this.#publish(engine, "arrives");
    for (const message of before) this.feed.apply(this.#workers[engine], { ...message, replayed: true });
  }
}
