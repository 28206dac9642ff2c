import type { Hashes, SequenceHash, WorkerId, WorkerWithDpRank } from "../../core/keys.js";
import { Block, type BlockHolder, type BlockTable, type Scope } from "./blocks.js";
import type { KvFeedCounters } from "./counters.js";
import { type EngineKey, type KvEvent, type KvRemoved, type KvStored, keyOf } from "./event.js";
import { GroupFilter, isElsewhere, tierOf } from "./tiers.js";
import { type Waiting, WaitingRoom } from "./waiting.js";

/** What the feed needs of an index; `PrefixIndex` is one. It must take a chain whose parent it does not hold. */
export interface KvEventIndex {
  store(worker: WorkerWithDpRank, hashes: Hashes, options: { parent?: SequenceHash; nowMs?: number }): void;
  remove(worker: WorkerWithDpRank, hashes: Hashes): void;
  clear(worker: WorkerWithDpRank): void;
  removeWorker(workerId: WorkerId): void;
}

/** Hashes the full blocks of a chain, as `hashTokens` does. */
export type TokenHasher = (
  tokens: Uint32Array,
  options: { blockSize: number; loraName?: string; cacheSalt?: string; parent?: SequenceHash },
) => { readonly sequence: BigUint64Array };

/** What all ranks of a feed share. */
export interface ViewContext {
  readonly index: KvEventIndex;
  readonly hash: TokenHasher;
  readonly blockSize: number;
  readonly table: BlockTable;
  readonly counters: KvFeedCounters;
}

const NO_SCOPE: Scope = { loraName: null, cacheSalt: null };

/** Where a chain starts: behind nothing, or behind a block. */
interface Start {
  /** `null` behind a block that is not indexed. */
  readonly sequence: SequenceHash | undefined | null;
  readonly scope: Scope;
}

const ROOT: Start = { sequence: undefined, scope: NO_SCOPE };

/** What one rank of an engine holds, by its events, which it keeps in the index. */
export class CacheView implements BlockHolder {
  readonly worker: WorkerWithDpRank;
  readonly blocks = new Map<EngineKey, Block>();
  readonly waiting: WaitingRoom;
  readonly #context: ViewContext;
  readonly #groups = new GroupFilter();
  /** The size of the last chain that came in blocks of another size. */
  #foreignBlockSize: number | null = null;

  constructor(worker: WorkerWithDpRank, context: ViewContext, maxWaitingBytes: number) {
    this.worker = worker;
    this.#context = context;
    this.waiting = new WaitingRoom(maxWaitingBytes);
  }

  /** Tokens in a block as the engine cuts them, where the feed does otherwise. */
  get foreignBlockSize(): number | null {
    return this.#foreignBlockSize;
  }

  /** Takes an event in. */
  apply(event: KvEvent, nowMs: number | undefined): void {
    if (event.type === "cleared") this.clear();
    else if (this.#concerns(event)) {
      if (event.type === "removed") this.#remove(event);
      else this.#admit(event, nowMs);
    }
  }

  /** Forgets every block, in the index as well. */
  clear(): void {
    this.#context.table.clear(this);
    this.waiting.clear();
    this.#context.index.clear(this.worker);
    this.#foreignBlockSize = null;
  }

  /** Forgets every block and what was learned of the engine. */
  restart(): void {
    this.clear();
    this.#groups.forget();
  }

  /** Tells whether an event speaks of this engine's own blocks, on its device, in a group that needs the whole prefix. */
  #concerns(event: KvStored | KvRemoved): boolean {
    const { counters } = this.#context;
    const isMain = this.#groups.admits(event);
    const tier = tierOf(event.medium);
    if (isElsewhere(event.locality)) counters.remoteEvents++;
    else if (tier !== "device")
      counters.lowerTierBlocks[tier] += event.type === "stored" ? event.blockHashes.length : 0;
    else if (!isMain) counters.otherGroupEvents++;
    else return true;
    return false;
  }

  #admit(event: KvStored, nowMs: number | undefined): void {
    const { counters, blockSize } = this.#context;
    if (event.blockSize !== blockSize) {
      counters.blockSizeEvents++;
      this.#foreignBlockSize = event.blockSize;
    } else if (isCircular(event)) counters.circularEvents++;
    else this.#store(event, nowMs);
  }

  /** Stores a chain and every chain that waited for one of its blocks, or lets it wait. */
  #store(event: KvStored, nowMs: number | undefined): void {
    const start = this.#startOf(event);
    if (start === null) {
      this.#context.counters.waitingBlocksDropped += this.waiting.add(event, event.parentBlockHash as EngineKey);
      return;
    }
    const blocks = [...this.#extend(event, start, NOTHING, nowMs)];
    const released = new Set<Waiting>();
    for (const block of blocks) {
      for (const chain of this.waiting.of(block.key)) {
        if (released.has(chain)) continue; // behind a block that two chains name
        released.add(chain);
        for (const next of this.#extend(chain.event, block, chain.gone, nowMs)) blocks.push(next);
      }
    }
    for (const chain of released) this.waiting.leave(chain); // not before: should the index refuse one, all come again
  }

  #startOf({ parentBlockHash }: KvStored): Start | null {
    return parentBlockHash === null ? ROOT : (this.blocks.get(keyOf(parentBlockHash)) ?? null);
  }

  /** Adds the blocks of a chain that are not gone, in runs between those that are, and gives them. */
  #extend(event: KvStored, start: Start, gone: ReadonlySet<EngineKey>, nowMs: number | undefined): readonly Block[] {
    const scope = scopeOf(event, start.scope);
    const sequences = this.#hash(event, start, scope);
    const blocks = event.blockHashes.map((hash, at) => new Block(this, keyOf(hash), sequences[at] ?? null, scope));
    const present: Block[] = [];
    for (let first = 0; first < blocks.length; ) {
      let end = first;
      while (end < blocks.length && !gone.has((blocks[end] as Block).key)) end++;
      const before = first === 0 ? (start.sequence ?? undefined) : sequences[first - 1];
      this.#index(sequences.subarray(first, end), before, nowMs);
      for (const block of blocks.slice(first, end)) {
        // at once: should the index refuse the next run, this one is known
        this.#put(block);
        present.push(block);
      }
      first = end + 1;
    }
    return present;
  }

  /** Gives the sequence hashes of the leading blocks that tokens identify. */
  #hash(event: KvStored, start: Start, scope: Scope): BigUint64Array {
    const { hash, blockSize } = this.#context;
    const blocks = event.blockHashes.length;
    const count = start.sequence === null ? 0 : Math.min(blocks, event.textBlocks ?? blocks);
    if (count === 0) return new BigUint64Array(0);
    return hash(event.tokenIds.subarray(0, count * blockSize), {
      blockSize,
      ...(scope.loraName === null ? {} : { loraName: scope.loraName }),
      ...(scope.cacheSalt === null ? {} : { cacheSalt: scope.cacheSalt }),
      ...(start.sequence === undefined || start.sequence === null ? {} : { parent: start.sequence }),
    }).sequence;
  }

  #index(sequences: BigUint64Array, parent: SequenceHash | undefined, nowMs: number | undefined): void {
    if (sequences.length === 0) return;
    this.#context.index.store(this.worker, sequences, {
      ...(parent === undefined ? {} : { parent }),
      ...(nowMs === undefined ? {} : { nowMs }),
    });
  }

  /** Notes a block under the engine's hash, in place of what had the hash before. */
  #put(block: Block): void {
    const { table, counters } = this.#context;
    if (block.sequence === null) counters.opaqueBlocks++;
    const before = this.blocks.get(block.key);
    if (before !== undefined && before.sequence !== block.sequence) this.#unindex(before);
    const forgotten = table.put(block);
    if (forgotten === null) return;
    counters.blocksForgotten++;
    this.#unindex(forgotten); // its removal could not be understood any more
  }

  #unindex({ holder, sequence }: Block): void {
    if (sequence !== null) this.#context.index.remove((holder as CacheView).worker, BigUint64Array.of(sequence));
  }

  #remove({ blockHashes }: KvRemoved): void {
    const { table, index, counters } = this.#context;
    const known = blockHashes.map((hash) => this.blocks.get(keyOf(hash)));
    const sequences = known.map((block) => block?.sequence ?? null).filter((sequence) => sequence !== null);
    if (sequences.length > 0) index.remove(this.worker, BigUint64Array.from(sequences));
    for (const hash of blockHashes) {
      const block = table.take(this, hash);
      const waited = this.waiting.remove(hash);
      if (block === null && !waited) counters.unknownRemovals++;
    }
  }
}

const NOTHING: ReadonlySet<EngineKey> = new Set();

/** A chain inherits adapter and salt from its parent: the salt is sent with the first block of a prompt only. */
function scopeOf(event: KvStored, inherited: Scope): Scope {
  const loraName = event.loraName ?? inherited.loraName;
  const cacheSalt = event.cacheSalt ?? inherited.cacheSalt;
  const isSame = loraName === inherited.loraName && cacheSalt === inherited.cacheSalt;
  return isSame ? inherited : { loraName, cacheSalt };
}

function isCircular({ blockHashes, parentBlockHash }: KvStored): boolean {
  const keys = new Set(blockHashes.map(keyOf));
  return keys.size < blockHashes.length || (parentBlockHash !== null && keys.has(keyOf(parentBlockHash)));
}
