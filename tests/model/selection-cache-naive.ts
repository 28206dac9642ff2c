import type { PeekedSelection, PendingSelection, RoutingPartition } from "../../src/selection/cache.js";
import type { CacheOptions, CacheSubject, CacheUnderTest, OrderRow } from "./selection-cache-subject.js";

export interface NaiveEntry {
  readonly modelName: string;
  readonly routingGroup: string;
  readonly id: string;
  readonly selection: PendingSelection;
  readonly insertedAtMs: number;
  readonly generation: number;
  readonly bytes: number;
}

export type Key = Pick<NaiveEntry, "modelName" | "routingGroup" | "id">;

/** The rules of the selection cache in one sorted array. What is protected is there to be broken on purpose. */
export class NaiveCache implements CacheUnderTest {
  entries: NaiveEntry[] = [];
  protected readonly ttlMs: number;
  protected readonly maxEntries: number;
  protected readonly maxBytes: number;
  protected generations = 0;

  constructor({ ttlMs = 120_000, maxEntries = 4_096, maxBytes = 268_435_456 }: CacheOptions) {
    this.ttlMs = ttlMs;
    this.maxEntries = maxEntries;
    this.maxBytes = maxBytes;
  }

  get size(): number {
    return this.entries.length;
  }

  get totalBytes(): number {
    return this.entries.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  insert(id: string, selection: PendingSelection, nowMs: number, insertedAtMs = nowMs): number {
    this.sweep(nowMs);
    const generation = this.generations++;
    const { modelName, routingGroup } = selection.partition;
    const bytes = this.bytesOf(id, selection);
    const entry: NaiveEntry = { modelName, routingGroup, id, selection, insertedAtMs, generation, bytes };
    this.replace(entry);
    this.evict(entry);
    return generation;
  }

  peek(partition: RoutingPartition, id: string, nowMs: number): PeekedSelection | null {
    const entry = this.find(partition, id);
    if (entry === undefined || this.isExpired(entry, nowMs)) return null;
    return { selection: entry.selection, generation: entry.generation };
  }

  remove(partition: RoutingPartition, id: string, generation: number): boolean {
    const entry = this.find(partition, id);
    return entry !== undefined && entry.generation === generation && this.drop(entry);
  }

  discard(partition: RoutingPartition, id: string): boolean {
    const entry = this.find(partition, id);
    return entry !== undefined && this.drop(entry);
  }

  protected find({ modelName, routingGroup }: RoutingPartition, id: string): NaiveEntry | undefined {
    return this.entries.find((entry) => this.isSame(entry, { modelName, routingGroup, id }));
  }

  protected isSame(left: Key, right: Key): boolean {
    return left.modelName === right.modelName && left.routingGroup === right.routingGroup && left.id === right.id;
  }

  protected isExpired(entry: NaiveEntry, nowMs: number): boolean {
    return Math.max(0, nowMs - entry.insertedAtMs) > this.ttlMs;
  }

  protected isBefore(left: NaiveEntry, right: NaiveEntry): boolean {
    if (left.insertedAtMs !== right.insertedAtMs) return left.insertedAtMs < right.insertedAtMs;
    return left.generation < right.generation;
  }

  protected bytesOf(id: string, { sequenceHashes, partition, loraName }: PendingSelection): number {
    const names = [id, partition.modelName, partition.routingGroup, loraName ?? ""];
    return names.reduce((sum, name) => sum + this.lengthOf(name), 8 * sequenceHashes.length);
  }

  protected lengthOf(name: string): number {
    return new TextEncoder().encode(name).length;
  }

  protected sweep(nowMs: number): void {
    this.entries = this.entries.filter((entry) => !this.isExpired(entry, nowMs));
  }

  protected replace(entry: NaiveEntry): void {
    this.entries = this.entries.filter((other) => !this.isSame(entry, other));
    this.entries.push(entry);
    this.entries.sort((left, right) => (this.isBefore(left, right) ? -1 : 1));
  }

  protected evict(_entry: NaiveEntry): void {
    while (this.isOver()) this.entries.shift();
  }

  protected isOver(): boolean {
    return this.size > this.maxEntries || this.totalBytes > this.maxBytes;
  }

  protected drop(entry: NaiveEntry): boolean {
    this.entries = this.entries.filter((other) => other !== entry);
    return true;
  }
}

export const naiveCache = naiveSubject("the naive cache", NaiveCache);

export function naiveSubject(name: string, Cache: new (options: CacheOptions) => NaiveCache): CacheSubject<NaiveCache> {
  return {
    name,
    create: (options) => new Cache(options),
    orderLength: ({ entries }) => entries.length,
    order: ({ entries }) =>
      entries.map(({ modelName, routingGroup, id, insertedAtMs, generation, bytes }): OrderRow => {
        return [modelName, routingGroup, id, insertedAtMs, generation, bytes];
      }),
  };
}
