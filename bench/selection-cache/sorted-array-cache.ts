import type { PeekedSelection, PendingSelection, RoutingPartition } from "../../src/selection/cache.js";
import type { Cache } from "./contract.js";

interface Entry {
  readonly key: string;
  readonly selection: PendingSelection;
  readonly insertedAtMs: number;
  readonly generation: number;
  readonly bytes: number;
}

/**
 * The selection cache as one writes it first in JavaScript, after the original's hash map and B-tree: a `Map` by one
 * key of all names, and an array sorted by anchor and generation, with binary search. Checks no arguments.
 */
export class SortedArrayCache implements Cache {
  readonly #entries = new Map<string, Entry>();
  readonly #order: Entry[] = [];
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #ttlMs = 120_000;
  readonly #encoder = new TextEncoder();
  #generations = 0;
  #totalBytes = 0;

  constructor({ maxEntries, maxBytes }: { maxEntries: number; maxBytes: number }) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  insert(id: string, selection: PendingSelection, nowMs: number, insertedAtMs: number = nowMs): number {
    for (let oldest = this.#order[0]; oldest !== undefined; oldest = this.#order[0]) {
      if (nowMs - oldest.insertedAtMs <= this.#ttlMs) break;
      this.#drop(oldest);
    }
    const key = keyOf(selection.partition, id);
    const replaced = this.#entries.get(key);
    if (replaced !== undefined) this.#drop(replaced);
    const bytes = this.#bytesOf(id, selection);
    const entry = { key, selection, insertedAtMs, generation: this.#generations++, bytes };
    this.#entries.set(key, entry);
    this.#order.splice(this.#placeOf(entry), 0, entry);
    this.#totalBytes += bytes;
    while (this.size > this.#maxEntries || this.#totalBytes > this.#maxBytes) this.#drop(this.#order[0] as Entry);
    return entry.generation;
  }

  peek(partition: RoutingPartition, id: string, nowMs: number): PeekedSelection | null {
    const entry = this.#entries.get(keyOf(partition, id));
    if (entry === undefined || nowMs - entry.insertedAtMs > this.#ttlMs) return null;
    return { selection: entry.selection, generation: entry.generation };
  }

  remove(partition: RoutingPartition, id: string, generation: number): boolean {
    const entry = this.#entries.get(keyOf(partition, id));
    if (entry === undefined || entry.generation !== generation) return false;
    this.#drop(entry);
    return true;
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.key);
    this.#order.splice(this.#placeOf(entry), 1);
    this.#totalBytes -= entry.bytes;
  }

  #placeOf({ insertedAtMs, generation }: Entry): number {
    let from = 0;
    let to = this.#order.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      const other = this.#order[middle] as Entry;
      const isBefore =
        other.insertedAtMs < insertedAtMs || (other.insertedAtMs === insertedAtMs && other.generation < generation);
      if (isBefore) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #bytesOf(id: string, { partition, sequenceHashes, loraName = "" }: PendingSelection): number {
    const names = this.#encoder.encode(id + partition.modelName + partition.routingGroup + loraName);
    return names.length + sequenceHashes.byteLength;
  }
}

function keyOf({ modelName, routingGroup }: RoutingPartition, id: string): string {
  return JSON.stringify([modelName, routingGroup, id]);
}
