import type { WorkerWithDpRank } from "../../core/keys.js";
import { CacheView, type ViewContext } from "./cache-view.js";
import { type KvEvent, weighEvent } from "./event.js";
import type { KvFeedStatus, NumberedBatch, ReplayRequest } from "./feed.js";
import { type CachedTokens, PREDICTION_REQUESTS, PredictionCheck } from "./prediction.js";
import { type Numbered, Sequencer, type StreamSink } from "./sequencer.js";

/**
 * How far the index may be relied on for a rank.
 *
 * `live`: it holds what the engine holds. `gap`: batches are missing and asked for; it stands still. `untrusted`: batches
 * are lost; what it holds is right, but not all. `block-size-mismatch`: the engine cuts blocks of another size, which are
 * not indexed. `prediction-mismatch`: the engine reports other cached tokens than the index predicts.
 */
export type KvFeedState = "live" | "gap" | "untrusted" | "block-size-mismatch" | "prediction-mismatch";

interface Message extends Numbered {
  readonly events: readonly KvEvent[];
}

/** What a batch takes beside its events, roughly. */
export const MESSAGE_BYTES = 256;

/** Follows the events of one rank. */
export class RankFeed implements StreamSink<Message> {
  readonly #worker: WorkerWithDpRank;
  readonly #context: ViewContext;
  readonly #view: CacheView;
  readonly #sequencer: Sequencer<Message>;
  readonly #prediction: PredictionCheck;
  #source: WorkerWithDpRank;
  /** Why the index lacks blocks that the engine holds. */
  #loss: string | null = null;
  #nowMs: number | undefined;
  #toldState: KvFeedState = "live";
  #isTelling = false;

  constructor(worker: WorkerWithDpRank, context: ViewContext, maxWaitingBytes: number, maxBufferedBytes: number) {
    this.#worker = worker;
    this.#source = worker;
    this.#context = context;
    this.#view = new CacheView(worker, context, maxWaitingBytes);
    this.#sequencer = new Sequencer(this, maxBufferedBytes);
    this.#prediction = new PredictionCheck(context.blockSize);
  }

  get waitingBlocks(): number {
    return this.#view.waiting.blocks;
  }

  get bufferedBatches(): number {
    return this.#sequencer.waiting;
  }

  get status(): KvFeedStatus {
    const [state, reason] = this.#judge();
    return { worker: this.#worker, state, reason, next: this.#sequencer.next };
  }

  receive(source: WorkerWithDpRank, batch: NumberedBatch & { readonly seq: number }, nowMs: number | undefined): void {
    const { seq, ts, events, replayed = false } = batch;
    const bytes = events.reduce((sum, event) => sum + weighEvent(event), MESSAGE_BYTES);
    this.#source = source;
    this.#nowMs = nowMs;
    const reception = this.#sequencer.receive({ seq, ts, events, replayed, bytes });
    if (reception === "duplicate") this.#context.counters.duplicateBatches++;
    if (reception === "full") this.#context.counters.refusedBatches++;
  }

  replayEnded(nowMs: number | undefined): void {
    this.#nowMs = nowMs ?? this.#nowMs;
    this.#sequencer.replayEnded();
  }

  reset(): void {
    this.#view.restart();
    this.#loss = null;
    this.#sequencer.reset();
  }

  /** Forgets every block, as the worker goes. */
  clear(): void {
    this.#view.clear();
  }

  reportCachedTokens(tokens: CachedTokens): void {
    this.#prediction.report(tokens);
  }

  // --- What the sequencer says ---

  apply({ events }: Message): void {
    for (const event of events) {
      this.#view.apply(event, this.#nowMs);
      if (event.type === "cleared") this.#loss = null; // now both hold nothing
    }
    this.#context.counters.batches++;
  }

  restarted(): void {
    this.#view.restart();
    this.#loss = null;
    this.#context.counters.restarts++;
  }

  lost(first: number, last: number): void {
    this.#view.clear();
    const batches = first === last ? `Batch ${first} is` : `Batches ${first} to ${last} are`;
    this.#loss = `${batches} lost: no replay brought them. What was known is cleared, and what came since may lack blocks.`;
    this.#context.counters.lostBatches += last - first + 1;
  }

  // --- What the outside is told ---

  /** Gives the replay to ask for; `null` if there is none. */
  takeRequest(): ReplayRequest | null {
    const from = this.#sequencer.takeRequest();
    return from === null ? null : { worker: this.#worker, source: this.#source, from };
  }

  /** Gives the status if the state is another than the last one given. */
  takeChange(): KvFeedStatus | null {
    const { status } = this;
    if (status.state === this.#toldState) return null;
    this.#toldState = status.state;
    return status;
  }

  /** Tells whether the outside may be told now: not while it is being told, when the one who tells goes on. */
  startTelling(): boolean {
    if (this.#isTelling) return false;
    this.#isTelling = true;
    return true;
  }

  endTelling(): void {
    this.#isTelling = false;
  }

  #judgeStream(): readonly [KvFeedState, string | null] {
    const { next, highest, hasGap, isBlind, isAsking } = this.#sequencer;
    if (isAsking && (hasGap || isBlind)) {
      const more = hasGap ? ` before batch ${highest}` : "";
      const missing = highest < 0 ? "Everything" : `Batch ${next} and perhaps more${more}`;
      return ["gap", `${missing} is missing, and a replay was asked for.`];
    }
    if (hasGap) return ["gap", `Batch ${next} is missing: the index refused it.`];
    if (isBlind) return ["untrusted", "What the engine holds is unknown since the reset: no replay brought it."];
    return this.#loss === null ? ["live", null] : ["untrusted", this.#loss];
  }

  #judge(): readonly [KvFeedState, string | null] {
    const { foreignBlockSize } = this.#view;
    const { mismatch } = this.#prediction;
    if (foreignBlockSize !== null) {
      const { blockSize } = this.#context;
      return [
        "block-size-mismatch",
        `Expected blocks of ${blockSize} tokens, got some of ${foreignBlockSize}, which are left out.`,
      ];
    }
    const stream = this.#judgeStream();
    if (stream[0] !== "live" || mismatch === null) return stream;
    const { predicted, actual } = mismatch;
    return [
      "prediction-mismatch",
      `Expected ${predicted} cached tokens in ${PREDICTION_REQUESTS} requests, got ${actual}: tokens, salts or adapters are hashed differently.`,
    ];
  }
}
