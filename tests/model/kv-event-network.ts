import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { hashTokens } from "../../src/core/token-hash.js";
import { KvEventFeed } from "../../src/selection/events.js";
import { BLOCK, FakeEngine, type HashForm, type Prompt, type Published } from "./kv-event-engine.js";
import { type IndexUnderTest, NaiveIndex } from "./kv-event-index.js";

/** What happens next, and to which of the two engines. */
export type Step = { readonly engine: 0 | 1 } & (
  | { readonly do: "admit"; readonly prompt: Prompt }
  | { readonly do: "evict"; readonly from: number; readonly count: number }
  | { readonly do: "clear" }
  | { readonly do: "restart" }
  | { readonly do: "reset" }
  | { readonly do: "publish"; readonly fate: "arrives" | "is lost" | "is late" | "arrives twice" }
  | { readonly do: "catch up"; readonly at: number }
  | { readonly do: "replay"; readonly lost: number; readonly breaks: boolean }
);

const WORKERS: readonly WorkerWithDpRank[] = [
  { workerId: "w", dpRank: 0 },
  { workerId: "w", dpRank: 1 },
];

/** Two engines, a feed that follows them, and everything that can go wrong in between. */
export class Network {
  readonly index: IndexUnderTest;
  readonly feed: KvEventFeed;
  readonly #createIndex: () => IndexUnderTest;
  readonly engines: readonly FakeEngine[];
  /** Messages under way, by engine. */
  readonly #late: Published[][] = [[], []];
  /** Replays that were asked for and not answered, by rank. */
  readonly #wanted = new Map<number, number>();

  constructor(
    forms: readonly [HashForm, HashForm],
    options: { keep?: number; maxBufferedBytesPerRank?: number; createIndex?: () => IndexUnderTest } = {},
  ) {
    const { keep, createIndex = () => new NaiveIndex(), ...limits } = options;
    this.#createIndex = createIndex;
    this.index = createIndex();
    this.engines = forms.map((form) => new FakeEngine(form, keep));
    this.feed = new KvEventFeed({
      ...{ index: this.index, blockSize: BLOCK },
      ...limits,
      onReplayNeeded: ({ worker, from }) => this.#wanted.set(worker.dpRank, from),
    });
  }

  take(step: Step): void {
    const engine = this.engines[step.engine] as FakeEngine;
    if (step.do === "admit") engine.admit(step.prompt);
    else if (step.do === "evict") engine.evict(step.from, step.count);
    else if (step.do === "clear") engine.clear();
    else if (step.do === "restart") this.#restart(step.engine);
    else if (step.do === "reset") this.feed.reset(WORKERS[step.engine] as WorkerWithDpRank);
    else if (step.do === "publish") this.#publish(step.engine, step.fate);
    else if (step.do === "replay") this.#replay(step.engine, step.lost, step.breaks);
    else if (step.do === "catch up") this.#catchUp(step.engine, step.at);
  }

  /** Delivers all that is under way, and one more message of each engine: without it, nobody knows of a lost last one. */
  settle(): void {
    for (const engine of [0, 1] as const) {
      while ((this.#late[engine] as Published[]).length > 0) this.#catchUp(engine, 0);
      this.#publish(engine, "arrives");
      for (let round = 0; this.#wanted.has(engine); round++) {
        if (round > 1_000) throw new Error("The feed asks for replays without an end.");
        this.#replay(engine, 0, false);
      }
    }
  }

  states(): string[] {
    return WORKERS.map((worker) => this.feed.status(worker)?.state ?? "unknown");
  }

  /** Counts the leading blocks of a prompt that the index says an engine holds. */
  indexed(engine: 0 | 1, { tokens, loraName, cacheSalt }: Prompt): number {
    const names = {
      ...(loraName === undefined ? {} : { loraName }),
      ...(cacheSalt === undefined ? {} : { cacheSalt }),
    };
    const { sequence } = hashTokens(Uint32Array.from(tokens), { blockSize: BLOCK, ...names });
    return this.index.overlapOf(WORKERS[engine] as WorkerWithDpRank, sequence);
  }

  /** What the index holds when the streams are applied in order, one after the other. */
  inOrder(): IndexUnderTest {
    const index = this.#createIndex();
    const feed = new KvEventFeed({ index, blockSize: BLOCK });
    this.engines.forEach((engine, at) => {
      for (const message of engine.history) feed.apply(WORKERS[at] as WorkerWithDpRank, message);
    });
    return index;
  }

  #publish(engine: 0 | 1, fate: (Step & { do: "publish" })["fate"]): void {
    const message = (this.engines[engine] as FakeEngine).publish();
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
    // The rank stands in the message: both engines were registered as rank 0.
    this.feed.apply(WORKERS[0] as WorkerWithDpRank, { ...message, dpRank: engine, replayed });
  }

  /**
   * Answers a replay, if one is wanted, of which `lost` messages do not arrive: those behind the first, dropped by a full
   * queue, or the last ones and the end marker, when the connection breaks. Then the caller asks anew.
   */
  #replay(engine: 0 | 1, lost: number, breaks: boolean): void {
    const from = this.#wanted.get(engine);
    if (from === undefined) return;
    const worker = WORKERS[engine] as WorkerWithDpRank;
    const all = (this.engines[engine] as FakeEngine).replay(from);
    const arriving = breaks ? all.slice(0, all.length - lost) : all.filter((_, at) => at === 0 || at > lost);
    if (!breaks) this.#wanted.delete(engine);
    for (const message of arriving) this.#deliver(engine, message, true);
    if (breaks) this.#wanted.set(engine, this.feed.status(worker)?.next ?? 0);
    else this.feed.replayEnded(worker);
  }

  /** Restarts an engine: its sockets close, and its first message arrives. */
  #restart(engine: 0 | 1): void {
    this.#late[engine] = [];
    if (this.#wanted.delete(engine)) this.feed.replayEnded(WORKERS[engine] as WorkerWithDpRank);
    (this.engines[engine] as FakeEngine).restart();
    this.#publish(engine, "arrives");
  }
}
