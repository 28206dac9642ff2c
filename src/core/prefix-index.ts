import { Status } from "../abi.js";
import { ArgumentRangeError, ArgumentTypeError } from "../errors.js";
import { describe } from "./describe.js";
import { DISPOSE } from "./dispose.js";
import { CoreInstance, lengthOf } from "./instance.js";
import type { Hashes, SequenceHash, WorkerId, WorkerWithDpRank } from "./keys.js";
import { CoreOwner } from "./owner.js";
import { checkBound, checkPrefixIndexOptions, type PrefixIndexOptions } from "./prefix-options.js";
import { type Holder, type Holdings, WorkerTable } from "./worker-table.js";

/** What a store may say besides. */
export interface StoreOptions {
  /** The hash of the block before the first; by default the first is a root. */
  readonly parent?: SequenceHash | undefined;
  /** The time, in milliseconds of any clock; an index with `ttlMs` needs it. */
  readonly nowMs?: number | undefined;
}

/** How much of a chain a worker holds. */
export interface Overlap {
  readonly worker: WorkerWithDpRank;
  /** Blocks from the root on, without a gap. */
  readonly blocks: number;
}

/**
 * Does as `overlap`, with its answer in two lists, for callers that look workers up by identity: the object of a worker is
 * the same in every answer, from its registration to its end. Not part of the package's entry.
 */
export let overlapOf: (index: PrefixIndex, hashes: Hashes, nowMs?: number) => Holdings;

/** The core behind an index, for tests that look inside. Not part of the package's entry. */
export let coreOfIndex: (index: PrefixIndex) => CoreInstance;

/**
 * Knows which worker holds which blocks, and answers how much of a prompt each has, counted from its root. Fed by the
 * KV events of engines, or by routing decisions with a time to live. Its size is bounded: where it is full, what was used
 * longest ago goes, leaves before their parents.
 */
export class PrefixIndex {
  static {
    overlapOf = (index, hashes, nowMs) => index.#overlap(hashes, nowMs);
    coreOfIndex = (index) => index.#owner.open();
  }

  readonly #hasTtl: boolean;
  readonly #ownMax: number;
  #workers = new WorkerTable();
  readonly #owner: CoreOwner;

  /**
   * Makes an empty index.
   *
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a bound is not a whole number from 1 to 16,777,215, or
   *   `ttlMs` is not above 0
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the smallest index does not fit
   */
  constructor(options: PrefixIndexOptions = {}) {
    const { maxEntries, maxEntriesPerWorker, ttlMs } = checkPrefixIndexOptions(options);
    const core = new CoreInstance(options);
    const status = -core.exports.createIndex(maxEntries, maxEntriesPerWorker, ttlMs, core.pagesMax);
    if (status !== Status.Ok) throw core.memoryError();
    core.refresh();
    this.#hasTtl = ttlMs > 0;
    this.#ownMax = maxEntriesPerWorker;
    this.#owner = new CoreOwner(core, "prefix index", () => {
      this.#workers = new WorkerTable();
    });
  }

  /** Counts the blocks that somebody holds, and the entries: a block counts for each worker and rank that holds it. */
  get size(): { readonly blocks: number; readonly entries: number } {
    const { exports } = this.#owner.open();
    return { blocks: exports.numBlocks(), entries: exports.numEntries() };
  }

  /** Counts the entries that went by themselves: evicted where there was no room, or expired. */
  get stats(): { readonly evicted: number; readonly expired: number } {
    const { exports } = this.#owner.open();
    return { evicted: exports.numEvicted(), expired: exports.numExpired() };
  }

  /** Entries that the index keeps of one worker and rank at most. */
  get maxEntriesPerWorker(): number {
    return this.#ownMax;
  }

  /** Counts the bytes of memory that the core takes. */
  get memoryBytes(): number {
    return this.#owner.open().exports.memory.buffer.byteLength;
  }

  /**
   * Says that a worker holds blocks. They count as used now, and so do their ancestors. Where the index is full, the
   * entries used longest ago go; of a chain that is longer than the bounds, its head is kept.
   *
   * @param hashes sequence hashes, each the child of the one before
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow; then nothing has changed
   * @throws {WorkersExhaustedError} `KVROUTE_WORKERS_EXHAUSTED` if the index knows 65,536 workers and ranks already
   */
  store(worker: WorkerWithDpRank, hashes: Hashes, options: StoreOptions = {}): void {
    const core = this.#owner.open();
    const { parent } = options;
    const nowMs = this.#time(options.nowMs);
    const known = this.#workers.find(worker);
    core.putHashes(hashes, 1, "hashes");
    if (parent !== undefined) core.putHash(parent, 0, "parent");
    if (hashes.length === 0) return;
    const holder = known ?? this.#workers.make(worker);
    let number: number;
    try {
      number = core.exports.storeBlocks(holder.number, holder.slot, hashes.length, parent === undefined ? 0 : 1, nowMs);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    this.#name(core, holder, number);
  }

  /** Says that a worker no longer holds blocks; those that it does not hold are passed over. Their descendants stay. */
  remove(worker: WorkerWithDpRank, hashes: Hashes): void {
    const core = this.#owner.open();
    const holder = this.#workers.find(worker);
    const page = core.hashes.length;
    // In pieces that fit the page as it is, so that it need not grow: removing never fails for want of memory.
    const all = lengthOf(hashes, "hashes") > page ? toArray(core, hashes) : hashes;
    for (let from = 0; from < all.length; from += page) {
      const length = Math.min(page, all.length - from);
      core.putHashes(all instanceof BigUint64Array ? all.subarray(from, from + length) : all, 0, "hashes");
      if (holder !== undefined) this.#owner.run(() => core.exports.removeBlocks(holder.number, length));
    }
  }

  /**
   * Limits the entries of a worker, on this rank, from now on and until `removeWorker`. Where it holds more, those that it
   * used longest ago go at once. It may come before the first store, and registers the worker then.
   *
   * @param maxEntries 1 to the `maxEntriesPerWorker` of the index
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `maxEntries` is not a whole number in that range
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the worker is new and the core may not grow
   * @throws {WorkersExhaustedError} `KVROUTE_WORKERS_EXHAUSTED` if the index knows 65,536 workers and ranks already
   */
  limit(worker: WorkerWithDpRank, maxEntries: number): void {
    const core = this.#owner.open();
    const most = checkBound(maxEntries, "maxEntries", this.#ownMax);
    const holder = this.#workers.find(worker) ?? this.#workers.make(worker);
    let number: number;
    try {
      number = core.exports.limitHolder(holder.number, holder.slot, most);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    this.#name(core, holder, number);
  }

  /** Says that a worker holds nothing any more, on this rank. It stays registered. */
  clear(worker: WorkerWithDpRank): void {
    const core = this.#owner.open();
    const holder = this.#workers.find(worker);
    if (holder !== undefined) this.#owner.run(() => core.exports.clearHolder(holder.number));
  }

  /** Forgets a worker with all its ranks. If it comes back, it starts anew. */
  removeWorker(workerId: WorkerId): void {
    const core = this.#owner.open();
    for (const { number } of this.#workers.ranksOf(workerId)) this.#owner.run(() => core.exports.removeHolder(number));
    this.#workers.remove(workerId);
  }

  /**
   * Finds the workers that hold the first block of a chain, and how many of its blocks each holds without a gap.
   *
   * @param hashes sequence hashes, root first
   * @param nowMs the time; an index with `ttlMs` needs it
   * @returns most blocks first, then who registered first: with the first store after it was made or removed
   * @throws {MemoryLimitError} `KVROUTE_MEMORY_LIMIT` if the core may not grow; then nothing has changed
   */
  overlap(hashes: Hashes, nowMs?: number): Overlap[] {
    const { workers, blocks } = this.#overlap(hashes, nowMs);
    return workers.map((worker, index) => ({ worker, blocks: blocks[index] as number }));
  }

  /** Lets go of the memory; afterwards every call but this one throws `KVROUTE_DISPOSED`. */
  dispose(): void {
    this.#owner.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }

  // Keeps what the core calls a holder that is new to it; or throws, where the core had no memory.
  #name(core: CoreInstance, holder: Holder, number: number): void {
    if (number < 0) throw core.memoryError();
    core.refresh();
    if (holder.number > 0) return;
    holder.number = number;
    this.#workers.add(holder);
  }

  #time(nowMs: unknown): number {
    if (nowMs === undefined && !this.#hasTtl) return 0;
    if (typeof nowMs !== "number") {
      const reason = this.#hasTtl ? ", as the index has a ttlMs" : "";
      throw new ArgumentTypeError(`Expected nowMs to be a number of milliseconds${reason}, got ${describe(nowMs)}.`);
    }
    if (!(nowMs >= 0 && nowMs < Number.POSITIVE_INFINITY)) {
      throw new ArgumentRangeError(`Expected nowMs to be a number of milliseconds, 0 or more, got ${nowMs}.`);
    }
    return nowMs;
  }

  #overlap(hashes: Hashes, nowMs: unknown): Holdings {
    const core = this.#owner.open();
    const time = this.#time(nowMs);
    core.putHashes(hashes, 0, "hashes");
    if (hashes.length === 0) return { workers: [], blocks: [] };
    let count: number;
    try {
      count = core.exports.overlap(hashes.length, time);
    } catch (trap) {
      throw this.#owner.stop(trap);
    }
    if (count < 0) throw core.memoryError();
    core.refresh();
    return this.#workers.read(core.halves, 2 * hashes.length, count);
  }
}

// A list is checked whole before a piece of it is used. `putHash` has the words for what is no hash.
function toArray(core: CoreInstance, hashes: Hashes): BigUint64Array {
  if (hashes instanceof BigUint64Array) return hashes;
  const array = new BigUint64Array(hashes.length);
  for (let index = 0; index < hashes.length; index++) {
    const hash: unknown = hashes[index];
    if (typeof hash !== "bigint" || BigInt.asUintN(64, hash) !== hash) core.putHash(hash, 0, `hashes[${index}]`);
    array[index] = hash as bigint;
  }
  return array;
}
