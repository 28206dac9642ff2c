import type { WorkerWithDpRank } from "../../core/keys.js";

/** Names what is routed together: a model, and a group of workers that serve it. */
export interface RoutingPartition {
  readonly modelName: string;
  readonly routingGroup: string;
}

/** What `select` computed for a request, and what booking it takes. The cache reads partition, hashes and adapter name. */
export interface PendingSelection<W = WorkerWithDpRank> {
  readonly partition: RoutingPartition;
  readonly worker: W;
  /** One hash per full block of the prompt, root first. */
  readonly sequenceHashes: BigUint64Array;
  /** Tokens of the prompt. */
  readonly islTokens: number;
  /** Tokens of the prompt that the worker has to compute. */
  readonly effectivePrefillTokens: number;
  readonly expectedOutputTokens?: number | undefined;
  readonly trackPrefillTokens: boolean;
  readonly loraName?: string | undefined;
}

/** A selection, and the insert that put it there. */
export interface PeekedSelection<W = WorkerWithDpRank> {
  /** The object that was inserted. */
  readonly selection: PendingSelection<W>;
  readonly generation: number;
}

/** The bounds of a cache. `Infinity` is no bound. */
export interface SelectionCacheOptions {
  /** How long a selection can be claimed, 120,000 by default. */
  readonly ttlMs?: number | undefined;
  /** Selections that are kept, 4,096 by default. */
  readonly maxEntries?: number | undefined;
  /** Bytes of hashes and names that are kept, 256 MiB by default. */
  readonly maxBytes?: number | undefined;
}
