import type { PendingSelection, RoutingPartition } from "../../src/selection/cache.js";
import { type Key, NaiveCache, type NaiveEntry, naiveSubject } from "./selection-cache-naive.js";
import type { CacheSubject } from "./selection-cache-subject.js";

// Caches that break one rule each.

class TtlIsExclusive extends NaiveCache {
  protected override isExpired(entry: NaiveEntry, nowMs: number): boolean {
    return super.isExpired(entry, nowMs) || nowMs - entry.insertedAtMs === this.ttlMs;
  }
}

class AgeIsAbsolute extends NaiveCache {
  protected override isExpired(entry: NaiveEntry, nowMs: number): boolean {
    return Math.abs(nowMs - entry.insertedAtMs) > this.ttlMs;
  }
}

class AgeCountsFromTheInsert extends NaiveCache {
  override insert(id: string, selection: PendingSelection, nowMs: number): number {
    return super.insert(id, selection, nowMs);
  }
}

class SweepsByTheAnchor extends NaiveCache {
  override insert(id: string, selection: PendingSelection, nowMs: number, insertedAtMs = nowMs): number {
    return super.insert(id, selection, insertedAtMs, insertedAtMs);
  }
}

class SweepsAfterwards extends NaiveCache {
  #nowMs = 0;

  protected override sweep(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  protected override evict(entry: NaiveEntry): void {
    super.sweep(this.#nowMs);
    super.evict(entry);
  }
}

class NeverSweeps extends NaiveCache {
  protected override sweep(): void {}
}

class SweepsOne extends NaiveCache {
  protected override sweep(nowMs: number): void {
    const [oldest] = this.entries;
    if (oldest !== undefined && this.isExpired(oldest, nowMs)) this.drop(oldest);
  }
}

class PeekSweeps extends NaiveCache {
  override peek(partition: RoutingPartition, id: string, nowMs: number) {
    const peeked = super.peek(partition, id, nowMs);
    if (peeked === null) super.discard(partition, id);
    return peeked;
  }
}

class RemoveIgnoresTheGeneration extends NaiveCache {
  override remove(partition: RoutingPartition, id: string): boolean {
    return this.discard(partition, id);
  }
}

class RemoveTakesOlderOnes extends NaiveCache {
  override remove(partition: RoutingPartition, id: string, generation: number): boolean {
    const entry = this.find(partition, id);
    return entry !== undefined && entry.generation <= generation && this.drop(entry);
  }
}

class DiscardDoesNothing extends NaiveCache {
  override discard(): boolean {
    return false;
  }
}

class EvictsTheNewest extends NaiveCache {
  protected override evict(): void {
    while (this.isOver()) this.entries.pop();
  }
}

class SparesTheNewcomer extends NaiveCache {
  protected override evict(entry: NaiveEntry): void {
    while (this.isOver()) {
      const victim = this.entries.find((other) => other !== entry);
      if (victim === undefined) return;
      this.drop(victim);
    }
  }
}

class TooLargeGoesAlone extends NaiveCache {
  protected override evict(entry: NaiveEntry): void {
    if (entry.bytes > this.maxBytes) this.drop(entry);
    super.evict(entry);
  }
}

class OneEntryTooMany extends NaiveCache {
  protected override isOver(): boolean {
    return this.size > this.maxEntries + 1 || this.totalBytes > this.maxBytes;
  }
}

class OneByteTooFew extends NaiveCache {
  protected override isOver(): boolean {
    return this.size > this.maxEntries || this.totalBytes >= this.maxBytes;
  }
}

class OrderOfInsertion extends NaiveCache {
  protected override isBefore(left: NaiveEntry, right: NaiveEntry): boolean {
    return left.generation < right.generation;
  }
}

class LaterGenerationFirst extends NaiveCache {
  protected override isBefore(left: NaiveEntry, right: NaiveEntry): boolean {
    if (left.insertedAtMs === right.insertedAtMs) return left.generation > right.generation;
    return super.isBefore(left, right);
  }
}

class EvictsBeforeReplacing extends NaiveCache {
  protected override replace(entry: NaiveEntry): void {
    while (this.size >= this.maxEntries && this.size > 0) this.entries.shift();
    super.replace(entry);
  }
}

class ReplacementKeepsItsAge extends NaiveCache {
  protected override replace(entry: NaiveEntry): void {
    const old = this.entries.find((other) => this.isSame(entry, other));
    super.replace(old === undefined ? entry : { ...entry, insertedAtMs: old.insertedAtMs });
  }
}

class ReplacementKeepsTheFirst extends NaiveCache {
  protected override replace(entry: NaiveEntry): void {
    if (!this.entries.some((other) => this.isSame(entry, other))) super.replace(entry);
  }
}

class GenerationsAreReused extends NaiveCache {
  protected override evict(entry: NaiveEntry): void {
    super.evict(entry);
    if (!this.entries.includes(entry)) this.generations--;
  }
}

class KeyIsConcatenated extends NaiveCache {
  protected override isSame(left: Key, right: Key): boolean {
    const text = ({ modelName, routingGroup, id }: Key) => modelName + routingGroup + id;
    return text(left) === text(right);
  }
}

class KeyIsNormalised extends NaiveCache {
  protected override isSame(left: Key, right: Key): boolean {
    const text = ({ modelName, routingGroup, id }: Key) => JSON.stringify([modelName, routingGroup, id]).normalize();
    return text(left) === text(right);
  }
}

class IdsAreGlobal extends NaiveCache {
  protected override isSame(left: Key, right: Key): boolean {
    return left.id === right.id;
  }
}

class BytesAreUnits extends NaiveCache {
  protected override lengthOf(name: string): number {
    return name.length;
  }
}

class AdapterIsFree extends NaiveCache {
  protected override bytesOf(id: string, { loraName: _, ...selection }: PendingSelection): number {
    return super.bytesOf(id, selection);
  }
}

class HashesHaveFourBytes extends NaiveCache {
  protected override bytesOf(id: string, selection: PendingSelection): number {
    return super.bytesOf(id, selection) - 4 * selection.sequenceHashes.length;
  }
}

const wrong = [
  TtlIsExclusive,
  AgeIsAbsolute,
  AgeCountsFromTheInsert,
  SweepsByTheAnchor,
  SweepsAfterwards,
  NeverSweeps,
  SweepsOne,
  PeekSweeps,
  RemoveIgnoresTheGeneration,
  RemoveTakesOlderOnes,
  DiscardDoesNothing,
  EvictsTheNewest,
  SparesTheNewcomer,
  TooLargeGoesAlone,
  OneEntryTooMany,
  OneByteTooFew,
  OrderOfInsertion,
  LaterGenerationFirst,
  EvictsBeforeReplacing,
  ReplacementKeepsItsAge,
  ReplacementKeepsTheFirst,
  GenerationsAreReused,
  KeyIsConcatenated,
  KeyIsNormalised,
  IdsAreGlobal,
  BytesAreUnits,
  AdapterIsFree,
  HashesHaveFourBytes,
];

export const mutants: readonly CacheSubject<NaiveCache>[] = wrong.map((Cache) => naiveSubject(Cache.name, Cache));
