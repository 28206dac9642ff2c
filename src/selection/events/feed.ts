import type { WorkerId, WorkerWithDpRank } from "../../core/keys.js";
import { hashTokens } from "../../core/token-hash.js";
import { workerKey } from "../../core/worker-key.js";
import { KvEventError } from "../../errors.js";
import { checkObject, checkTime } from "../cache/checks.js";
import { BlockTable } from "./blocks.js";
import type { KvEventIndex, TokenHasher, ViewContext } from "./cache-view.js";
import { createCounters, type KvFeedCounters } from "./counters.js";
import { DP_RANK_MAX } from "./decode.js";
import type { KvEvent } from "./event.js";
import { checkCount, checkEvents, checkFunction, checkSeconds, checkSeq, checkWorker } from "./inputs.js";
import type { CachedTokens } from "./prediction.js";
import { type KvFeedState, RankFeed } from "./rank-feed.js";

/** The most tokens of a block that are hashed. */
const BLOCK_SIZE_MAX = 4_096;

/** How a feed is made. */
export interface KvEventFeedOptions {
  /** Where the blocks are indexed, a `PrefixIndex`. */
  readonly index: KvEventIndex;
  /** Gives the sequence hashes that prompts are looked up by. Default: `hashTokens`. */
  readonly hash?: TokenHasher | undefined;
  /** Tokens in a block, as the engines cut them: 1 to 4,096. */
  readonly blockSize: number;
  /**
   * Asks the engine for what it sent from a number on; `replayEnded` must follow, also when there is no answer.
   *
   * Without it, what is missed is lost at once.
   */
  readonly onReplayNeeded?: ((request: ReplayRequest) => void) | undefined;
  /** Says that the state of a rank has changed. */
  readonly onStateChange?: ((status: KvFeedStatus) => void) | undefined;
  /** Blocks whose engine hashes are known, over all ranks. Default 1,000,000. */
  readonly maxBlocks?: number | undefined;
  /** Memory for chains that wait for their parents, in bytes for each rank. Default 1 MiB. */
  readonly maxWaitingBytesPerRank?: number | undefined;
  /** Memory for batches behind a gap, in bytes for each rank. Default 16 MiB. */
  readonly maxBufferedBytesPerRank?: number | undefined;
  /** Pairs of worker and rank that are followed. Default 16,384. */
  readonly maxRanks?: number | undefined;
}

/** A wish for what an engine sent before. */
export interface ReplayRequest {
  /** The rank whose events are missing. */
  readonly worker: WorkerWithDpRank;
  /** The worker as it was given with the last batch of the rank: it names the socket, should the rank say that it is another. */
  readonly source: WorkerWithDpRank;
  /** The first number that is wanted. */
  readonly from: number;
}

/** A batch of events with the number of its message. A decoded payload has all but the number. */
export interface NumberedBatch {
  readonly seq: number | bigint;
  readonly events: readonly KvEvent[];
  /** When the engine made the batch. Without it, only a number 0 that comes again tells of a restart. */
  readonly ts?: number | undefined;
  /** The rank that the engine says it is, which outweighs the worker's. */
  readonly dpRank?: number | null | undefined;
  /** Whether the batch answers a request for a replay. Default: it is live. */
  readonly replayed?: boolean | undefined;
  /** Events that the decoder left out. */
  readonly ignored?: number | undefined;
}

/** What is known of one rank's events. */
export interface KvFeedStatus {
  readonly worker: WorkerWithDpRank;
  readonly state: KvFeedState;
  /** A sentence that says why, unless the state is `live`. */
  readonly reason: string | null;
  /** The first number that was not applied. */
  readonly next: number;
}

/** Keeps an index true to what engines say of their caches. */
export class KvEventFeed {
  readonly #context: ViewContext;
  readonly #options: KvEventFeedOptions;
  readonly #counters = createCounters();
  readonly #maxRanks: number;
  readonly #maxWaitingBytes: number;
  readonly #maxBufferedBytes: number;
  readonly #workers = new Map<WorkerId, Map<number, RankFeed>>();
  #ranks = 0;

  /**
   * Makes a feed that knows no worker.
   *
   * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if an option has the wrong type
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a number of the options is out of its range
   */
  constructor(options: KvEventFeedOptions) {
    checkObject(options, "options");
    const { index, hash = hashTokens, maxBlocks, maxWaitingBytesPerRank, maxBufferedBytesPerRank, maxRanks } = options;
    checkObject(index, "index");
    checkFunction("hash", hash);
    checkFunction("onReplayNeeded", options.onReplayNeeded);
    checkFunction("onStateChange", options.onStateChange);
    const blockSize = checkCount("blockSize", options.blockSize, 1, BLOCK_SIZE_MAX);
    const table = new BlockTable(checkCount("maxBlocks", maxBlocks ?? 1_000_000, 1));
    this.#context = { index, hash, blockSize, table, counters: this.#counters };
    this.#options = options;
    this.#maxRanks = checkCount("maxRanks", maxRanks ?? 16_384, 1);
    this.#maxWaitingBytes = checkCount("maxWaitingBytesPerRank", maxWaitingBytesPerRank ?? 2 ** 20, 0);
    this.#maxBufferedBytes = checkCount("maxBufferedBytesPerRank", maxBufferedBytesPerRank ?? 2 ** 24, 0);
  }

  /** What the feed has seen so far. */
  get counters(): Readonly<KvFeedCounters> {
    return { ...this.#counters, lowerTierBlocks: { ...this.#counters.lowerTierBlocks } };
  }

  /** What the feed holds: every number has its limit in the options. */
  get size(): {
    readonly ranks: number;
    readonly blocks: number;
    readonly waitingBlocks: number;
    readonly bufferedBatches: number;
  } {
    const ranks = [...this.#workers.values()].flatMap((worker) => [...worker.values()]);
    return {
      ranks: this.#ranks,
      blocks: this.#context.table.size,
      waitingBlocks: ranks.reduce((sum, rank) => sum + rank.waitingBlocks, 0),
      bufferedBatches: ranks.reduce((sum, rank) => sum + rank.bufferedBatches, 0),
    };
  }

  /**
   * Takes a batch, applies it when all before it are applied, and asks for those that are missing. What the index throws
   * comes through: then the batch counts as missing, and may be given again.
   *
   * @param nowMs the time that the index is given with what is stored, where it has a time to live
   * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE`, {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if an argument or
   *   an event is malformed; then nothing has changed
   * @throws {KvEventError} `KVROUTE_KV_EVENT_RANKS` if the rank is new and `maxRanks` are followed
   */
  apply(worker: WorkerWithDpRank, batch: NumberedBatch, nowMs?: number): void {
    const source = checkWorker(worker);
    checkObject(batch, "batch");
    const seq = checkSeq(batch.seq);
    const dpRank = checkCount("dpRank", batch.dpRank ?? source.dpRank, 0, DP_RANK_MAX);
    const ignored = checkCount("ignored", batch.ignored ?? 0, 0);
    checkSeconds(batch.ts);
    if (nowMs !== undefined) checkTime(nowMs, "nowMs");
    checkEvents(batch.events);
    const rank = this.#find(source.workerId, dpRank) ?? this.#open(source.workerId, dpRank);
    this.#counters.unknownEvents += ignored;
    this.#settle(rank, () => rank.receive(source, { ...batch, seq }, nowMs));
  }

  /** Says that the replay that a rank was asked for has ended, with its end marker or because no answer came. */
  replayEnded(worker: WorkerWithDpRank, nowMs?: number): void {
    if (nowMs !== undefined) checkTime(nowMs, "nowMs");
    const rank = this.#lookUp(worker);
    if (rank !== null) this.#settle(rank, () => rank.replayEnded(nowMs));
  }

  /** Forgets what a rank holds and asks for all that it sent: for a socket that was connected anew. */
  reset(worker: WorkerWithDpRank): void {
    const rank = this.#lookUp(worker);
    if (rank !== null) this.#settle(rank, () => rank.reset());
  }

  /** Forgets a worker with all its ranks, in the index as well. */
  removeWorker(workerId: WorkerId): void {
    const key = workerKey(workerId);
    const ranks = this.#workers.get(key);
    for (const rank of ranks?.values() ?? []) rank.clear();
    this.#workers.delete(key);
    this.#ranks -= ranks?.size ?? 0;
    this.#context.index.removeWorker(workerId);
  }

  /** Forgets one rank of a worker and clears it in the index, which goes on to count it among its workers and ranks. */
  removeRank(worker: WorkerWithDpRank): void {
    const { workerId, dpRank } = checkWorker(worker);
    const ranks = this.#workers.get(workerId);
    const rank = ranks?.get(dpRank);
    if (ranks === undefined || rank === undefined) return;
    rank.clear();
    ranks.delete(dpRank);
    if (ranks.size === 0) this.#workers.delete(workerId);
    this.#ranks--;
  }

  /** Notes how many tokens of a prompt were cached: what the index said, and what the engine reported afterwards. */
  reportCachedTokens(worker: WorkerWithDpRank, tokens: CachedTokens): void {
    checkObject(tokens, "tokens");
    const predicted = checkCount("predicted", tokens.predicted, 0);
    const actual = checkCount("actual", tokens.actual, 0);
    const rank = this.#lookUp(worker);
    if (rank !== null) this.#settle(rank, () => rank.reportCachedTokens({ predicted, actual }));
  }

  /** Says how it stands with a rank; `null` if no batch of it came yet. */
  status(worker: WorkerWithDpRank): KvFeedStatus | null {
    return this.#lookUp(worker)?.status ?? null;
  }

  /** Lists how it stands with every rank. */
  statuses(): KvFeedStatus[] {
    return [...this.#workers.values()].flatMap((ranks) => Array.from(ranks.values(), (rank) => rank.status));
  }

  #lookUp(worker: WorkerWithDpRank): RankFeed | null {
    const { workerId, dpRank } = checkWorker(worker);
    return this.#find(workerId, dpRank);
  }

  #find(workerId: WorkerId, dpRank: number): RankFeed | null {
    return this.#workers.get(workerId)?.get(dpRank) ?? null;
  }

  #open(workerId: WorkerId, dpRank: number): RankFeed {
    if (this.#ranks >= this.#maxRanks) {
      const message = `Expected events of at most ${this.#maxRanks} ranks, got some of one more: ${workerId} rank ${dpRank}.`;
      throw new KvEventError("KVROUTE_KV_EVENT_RANKS", message);
    }
    const rank = new RankFeed({ workerId, dpRank }, this.#context, this.#maxWaitingBytes, this.#maxBufferedBytes);
    const ranks = this.#workers.get(workerId) ?? new Map<number, RankFeed>();
    this.#workers.set(workerId, ranks.set(dpRank, rank));
    this.#ranks++;
    return rank;
  }

  /** Runs a change of a rank, and then tells the outside: it may call the feed in turn. */
  #settle(rank: RankFeed, change: () => void): void {
    try {
      change();
    } finally {
      this.#tell(rank);
    }
  }

  #tell(rank: RankFeed): void {
    const { onReplayNeeded, onStateChange } = this.#options;
    if (!rank.startTelling()) return;
    try {
      for (let request = rank.takeRequest(); request !== null; request = rank.takeRequest()) {
        if (onReplayNeeded === undefined) rank.replayEnded(undefined);
        else onReplayNeeded(request);
      }
      const change = rank.takeChange();
      if (change !== null) onStateChange?.(change);
    } finally {
      rank.endTelling();
    }
  }
}
