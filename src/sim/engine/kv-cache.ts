import { BlockPool } from "../../core/block-pool.js";
import type { SequenceHash } from "../../core/keys.js";
import type { KvEvent, KvStored } from "../../selection/events/event.js";
import type { Limits } from "./options.js";
import type { Sequence } from "./sequence.js";

const NONE: readonly bigint[] = [];

/** The KV cache of an engine: which blocks each sequence holds, and what there is to tell about it. */
export class KvCache {
  readonly pool: BlockPool;
  readonly #blockSize: number;
  readonly #isCaching: boolean;
  #events: KvEvent[] = [];

  constructor(limits: Limits) {
    this.pool = new BlockPool({ capacity: limits.numGpuBlocks });
    this.#blockSize = limits.blockSize;
    this.#isCaching = limits.enablePrefixCaching;
  }

  /** Counts the blocks that nobody uses. */
  get free(): number {
    return this.pool.capacity - this.pool.numActive;
  }

  /** Counts the blocks that so many tokens take. */
  blocksOf(tokens: number): number {
    return Math.ceil(tokens / this.#blockSize);
  }

  /** Counts the leading blocks of a sequence that it could reuse. Its last token is computed in any case. */
  match(sequence: Sequence): { readonly resident: number; readonly active: number } {
    const candidates = sequence.hashes(Math.floor((sequence.length - 1) / this.#blockSize));
    return candidates.length === 0 ? NO_MATCH : this.pool.matchPrefix(candidates);
  }

  /** Gives a sequence without blocks those that it can reuse, and room up to so many tokens. */
  admit(sequence: Sequence, reusedBlocks: number, tokens: number): boolean {
    const prefix = sequence.hashes(reusedBlocks);
    const outcome = this.pool.reserve(prefix, this.blocksOf(tokens) - reusedBlocks);
    if (outcome === null) return false;
    this.#tellRemoved(outcome.removed);
    const reused = this.pool.activatePrefix(outcome.reservation);
    sequence.lease = [...reused, ...this.pool.allocateAllPrivate(outcome.reservation)];
    sequence.cachedBlocks = reusedBlocks;
    return true;
  }

  /** Gives a sequence room up to so many tokens, or changes nothing. */
  grow(sequence: Sequence, tokens: number): boolean {
    const missing = this.blocksOf(tokens) - sequence.lease.length;
    if (missing <= 0) return true;
    const outcome = this.pool.reserve(NONE, missing);
    if (outcome === null) return false;
    this.#tellRemoved(outcome.removed);
    sequence.lease.push(...this.pool.allocateAllPrivate(outcome.reservation));
    return true;
  }

  /** Caches the blocks of a sequence that its computed tokens fill. */
  complete(sequence: Sequence): void {
    if (!this.#isCaching) return;
    const first = sequence.cachedBlocks;
    const full = Math.floor(sequence.computed / this.#blockSize);
    if (full === first) return;
    const hashes = sequence.hashes(full);
    let run = first; // where the blocks begin that nobody had before
    for (let block = first; block < full; block++) {
      if (this.pool.cachePrivate(sequence.lease[block] as number, hashes[block] as bigint)) continue;
      this.#tellStored(sequence, hashes, run, block);
      run = block + 1;
    }
    this.#tellStored(sequence, hashes, run, full);
    sequence.cachedBlocks = full;
  }

  /** Takes all blocks of a sequence back, the last first. */
  release(sequence: Sequence): void {
    this.pool.releaseChain(sequence.lease);
    sequence.lease = [];
    sequence.cachedBlocks = 0;
    sequence.computed = 0;
    sequence.prefillEnd = 0;
  }

  /** Hands over what happened since the last time. */
  takeEvents(): readonly KvEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #tellRemoved(hashes: BigUint64Array): void {
    if (hashes.length === 0) return;
    this.#events.push({ type: "removed", blockHashes: [...hashes], medium: "GPU", groupIdx: null });
  }

  #tellStored(sequence: Sequence, hashes: readonly SequenceHash[], from: number, to: number): void {
    if (from === to) return;
    const { loraName, cacheSalt } = sequence.request;
    const stored: KvStored = {
      type: "stored",
      blockHashes: hashes.slice(from, to),
      parentBlockHash: from === 0 ? null : (hashes[from - 1] as bigint),
      tokenIds: sequence.tokensOf(from, to - from),
      blockSize: this.#blockSize,
      loraId: null,
      medium: "GPU",
      loraName: loraName || null,
      cacheSalt: cacheSalt || null,
      groupIdx: null,
      specKind: null,
      slidingWindow: null,
    };
    this.#events.push(stored);
  }
}

const NO_MATCH = { resident: 0, active: 0 };
