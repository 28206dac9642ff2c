import type { WorkerWithDpRank } from "../core/keys.js";
import { type Aged, AgeOrder, NOT_LATE } from "./cache/age-order.js";
import { checkHashes, checkLimit, checkNumber, checkObject, checkText, checkTime } from "./cache/checks.js";
import type { Identified } from "./cache/id-table.js";
import { type PartitionEntries, Partitions } from "./cache/partitions.js";
import type { PeekedSelection, PendingSelection, RoutingPartition, SelectionCacheOptions } from "./cache/types.js";
import { utf8Length } from "./cache/utf8.js";

export type { PeekedSelection, PendingSelection, RoutingPartition, SelectionCacheOptions };

const TTL_MS = 120_000;
const MAX_ENTRIES = 4_096;
const MAX_BYTES = 256 * 2 ** 20;

/** What a cache holds, as tests see it. Both lists are part of one order. */
export interface CacheInside {
  readonly listed: readonly EntryInside[];
  readonly late: readonly EntryInside[];
  readonly models: number;
  readonly partitions: number;
}

interface EntryInside {
  readonly partition: RoutingPartition;
  readonly id: string;
  readonly insertedAtMs: number;
  readonly generation: number;
  readonly bytes: number;
}

/** Looks inside a cache, for tests. Not part of the package's entry. */
export let insideOf: <W>(cache: SelectionCache<W>) => CacheInside;

class Entry<W> implements Aged<Entry<W>>, Identified<Entry<W>>, EntryInside {
  older: Entry<W> | null = null;
  newer: Entry<W> | null = null;
  lateIndex = NOT_LATE;
  idHash = 0;
  chained: Entry<W> | null = null;

  constructor(
    readonly partition: PartitionEntries<Entry<W>>,
    readonly id: string,
    readonly selection: PendingSelection<W>,
    readonly insertedAtMs: number,
    readonly generation: number,
    readonly bytes: number,
  ) {}
}

/**
 * Keeps what `select` computed until it is booked, by partition and selection id: bounded in age, entries and bytes, and
 * oldest first to go. Time is an argument everywhere, in milliseconds of any one clock.
 */
export class SelectionCache<W = WorkerWithDpRank> {
  static {
    insideOf = (cache) => ({ ...cache.#order.inspect(), ...cache.#partitions.inspect() });
  }

  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #partitions = new Partitions<Entry<W>>();
  readonly #order = new AgeOrder<Entry<W>>();
  #totalBytes = 0;
  #evicted = 0;
  #expired = 0;
  #generations = 0;

  /**
   * Makes an empty cache.
   *
   * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if `options` is no object, or a bound not a number
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a bound is negative or NaN
   */
  constructor(options: SelectionCacheOptions = {}) {
    checkObject(options, "options");
    const { ttlMs = TTL_MS, maxEntries = MAX_ENTRIES, maxBytes = MAX_BYTES } = options;
    this.#ttlMs = checkLimit(ttlMs, "ttlMs");
    this.#maxEntries = checkLimit(maxEntries, "maxEntries");
    this.#maxBytes = checkLimit(maxBytes, "maxBytes");
  }

  /** Counts the selections that are kept; expired ones are, until an insert sweeps them. */
  get size(): number {
    return this.#order.size;
  }

  /** Sums what is kept: 8 bytes a hash, and the UTF-8 bytes of selection id, model, group and adapter name. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** Counts the selections that went by themselves: for want of room, or because their time had come. */
  get stats(): { readonly evicted: number; readonly expired: number } {
    return { evicted: this.#evicted, expired: this.#expired };
  }

  /**
   * Keeps a selection, in place of the one that had its id in its partition. Sweeps expired selections first, and drops
   * the oldest afterwards while there are too many entries or bytes: a selection above `maxBytes` takes all older ones
   * along and then goes itself.
   *
   * @param selection handed over: it is kept as it is, hashes included, and must not be changed any more
   * @param nowMs the time of the sweep
   * @param insertedAtMs when the life of the selection began; `nowMs` by default
   * @returns the generation: 0, 1, 2 …, one more with each insert
   * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if an id or a name is not a string, a time not a number, or the
   *   hashes are not a `BigUint64Array`
   * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a time is not finite
   */
  insert(selectionId: string, selection: PendingSelection<W>, nowMs: number, insertedAtMs: number = nowMs): number {
    checkText(selectionId, "selectionId");
    checkObject(selection, "selection");
    const { partition, sequenceHashes, loraName } = selection;
    checkPartition(partition);
    checkHashes(sequenceHashes, "sequenceHashes");
    if (loraName !== undefined) checkText(loraName, "loraName");
    checkTime(nowMs, "nowMs");
    checkTime(insertedAtMs, "insertedAtMs");
    this.#sweep(nowMs);
    const home = this.#partitions.open(partition.modelName, partition.routingGroup);
    const names = home.bytes + utf8Length(selectionId) + (loraName === undefined ? 0 : utf8Length(loraName));
    const bytes = names + sequenceHashes.length * BigUint64Array.BYTES_PER_ELEMENT;
    const entry = new Entry(home, selectionId, selection, insertedAtMs, this.#generations++, bytes);
    const replaced = home.entries.put(entry);
    if (replaced !== undefined) this.#leave(replaced);
    this.#order.add(entry);
    this.#totalBytes += bytes;
    this.#shrink();
    return entry.generation;
  }

  /** Finds a selection that has not expired, and leaves it there: `remove` it once it is booked. */
  peek(partition: RoutingPartition, selectionId: string, nowMs: number): PeekedSelection<W> | null {
    checkTime(nowMs, "nowMs");
    const entry = this.#find(partition, selectionId);
    if (entry === undefined || this.#isExpired(entry, nowMs)) return null;
    return { selection: entry.selection, generation: entry.generation };
  }

  /** Removes a selection unless a later insert has taken its id, whatever its age. Returns whether it went. */
  remove(partition: RoutingPartition, selectionId: string, generation: number): boolean {
    checkNumber(generation, "generation");
    const entry = this.#find(partition, selectionId);
    if (entry === undefined || entry.generation !== generation) return false;
    this.#drop(entry);
    return true;
  }

  /** Removes whatever has the id, whatever its generation and age. Returns whether there was anything. */
  discard(partition: RoutingPartition, selectionId: string): boolean {
    const entry = this.#find(partition, selectionId);
    if (entry === undefined) return false;
    this.#drop(entry);
    return true;
  }

  #find(partition: RoutingPartition, selectionId: string): Entry<W> | undefined {
    checkPartition(partition);
    checkText(selectionId, "selectionId");
    return this.#partitions.find(partition.modelName, partition.routingGroup)?.entries.get(selectionId);
  }

  /** An anchor in the future, as after a clock that ran backwards, gives a negative age: not expired. */
  #isExpired(entry: Entry<W>, nowMs: number): boolean {
    return nowMs - entry.insertedAtMs > this.#ttlMs;
  }

  // The order is one of age, so that whatever stands behind a living entry lives as well.
  #sweep(nowMs: number): void {
    let { oldest } = this.#order;
    while (oldest !== null && this.#isExpired(oldest, nowMs)) {
      this.#drop(oldest);
      this.#expired++;
      ({ oldest } = this.#order);
    }
  }

  #shrink(): void {
    while (this.size > this.#maxEntries || this.#totalBytes > this.#maxBytes) {
      this.#drop(this.#order.oldest as Entry<W>); // limits are 0 or more, so what passes one holds an entry
      this.#evicted++;
    }
  }

  #drop(entry: Entry<W>): void {
    const { partition } = entry;
    partition.entries.delete(entry);
    if (partition.entries.size === 0) this.#partitions.close(partition);
    this.#leave(entry);
  }

  #leave(entry: Entry<W>): void {
    this.#order.delete(entry);
    this.#totalBytes -= entry.bytes;
  }
}

function checkPartition(partition: RoutingPartition): void {
  checkObject(partition, "partition");
  checkText(partition.modelName, "partition.modelName");
  checkText(partition.routingGroup, "partition.routingGroup");
}
