import { encode } from "@msgpack/msgpack";
import type { WorkerWithDpRank } from "../../src/core/keys.js";
import { hashTokens } from "../../src/core/token-hash.js";
import {
  decodeKvEvents,
  type EngineHash,
  type KvEvent,
  KvEventFeed,
  type KvEventFeedOptions,
  type KvFeedStatus,
  type KvRemoved,
  type KvStored,
  type ReplayRequest,
} from "../../src/selection/events.js";
import { BLOCK } from "./kv-event-engine.js";
import { RealIndex } from "./kv-event-index.js";

/** A stored chain; the tokens are those of its first block, the second, and so on, `BLOCK` each. */
export function stored(
  blockHashes: readonly EngineHash[],
  tokens: readonly number[],
  rest: Partial<KvStored> = {},
): KvStored {
  const nothing = { parentBlockHash: null, loraId: null, medium: null, loraName: null, groupIdx: null };
  const kind = { specKind: null, slidingWindow: null };
  return {
    type: "stored",
    ...nothing,
    ...kind,
    blockSize: BLOCK,
    blockHashes,
    tokenIds: Uint32Array.from(tokens),
    ...rest,
  };
}

export function removed(blockHashes: readonly EngineHash[], rest: Partial<KvRemoved> = {}): KvRemoved {
  return { type: "removed", blockHashes, medium: null, groupIdx: null, ...rest };
}

/** A chain of one block with tokens of its own. */
export const lone = (number: number): KvEvent => stored([BigInt(number)], [number, number]);

export const cleared: KvEvent = { type: "cleared" };

/** The events of a payload in the array form, each an array with its tag first. */
export function decoded(...events: readonly unknown[][]): readonly KvEvent[] {
  return decodeKvEvents(encode([1.5, events], { useBigInt64: true })).events;
}

export const a0: WorkerWithDpRank = { workerId: "a", dpRank: 0 };
export const a1: WorkerWithDpRank = { workerId: "a", dpRank: 1 };
export const b0: WorkerWithDpRank = { workerId: "b", dpRank: 0 };

/** A feed over an index, and what it told the outside. */
export class Stage {
  readonly index = new RealIndex();
  readonly requests: ReplayRequest[] = [];
  readonly changes: KvFeedStatus[] = [];
  readonly feed: KvEventFeed;

  constructor(options: Partial<KvEventFeedOptions> = {}) {
    this.feed = new KvEventFeed({
      ...{ index: this.index, blockSize: BLOCK },
      onReplayNeeded: (request) => this.requests.push(request),
      onStateChange: (status) => this.changes.push(status),
      ...options,
    });
  }

  /** Applies a live batch, made a second after the one before it in number. */
  apply(worker: WorkerWithDpRank, seq: number, ...events: readonly KvEvent[]): void {
    this.feed.apply(worker, { seq, ts: 1_000 + seq, events });
  }

  /** Applies a batch that answers a replay. */
  replay(worker: WorkerWithDpRank, seq: number, ...events: readonly KvEvent[]): void {
    this.feed.apply(worker, { seq, ts: 1_000 + seq, events, replayed: true });
  }

  /** Counts the leading blocks of a prompt that a rank is believed to hold. */
  overlap(
    worker: WorkerWithDpRank,
    tokens: readonly number[],
    names: { loraName?: string; cacheSalt?: string } = {},
  ): number {
    const { sequence } = hashTokens(Uint32Array.from(tokens), { blockSize: BLOCK, ...names });
    return this.index.overlapOf(worker, sequence);
  }

  state(worker: WorkerWithDpRank): string | undefined {
    return this.feed.status(worker)?.state;
  }
}
