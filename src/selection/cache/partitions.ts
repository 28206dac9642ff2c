import { type Identified, IdTable } from "./id-table.js";
import type { RoutingPartition } from "./types.js";
import { utf8Length } from "./utf8.js";

/** The entries of one partition, by id. */
export class PartitionEntries<T extends Identified<T>> implements RoutingPartition {
  readonly entries = new IdTable<T>();
  /** Bytes of both names in UTF-8. */
  readonly bytes: number;

  constructor(
    readonly modelName: string,
    readonly routingGroup: string,
  ) {
    this.bytes = utf8Length(modelName) + utf8Length(routingGroup);
  }
}

/**
 * Partitions that have entries, and at most one that has none, by both of their names: maps in a map, so that no two pairs
 * of names can be one key.
 */
export class Partitions<T extends Identified<T>> {
  readonly #models = new Map<string, Map<string, PartitionEntries<T>>>();
  /** The partition that was emptied last: it stays, for in a quiet hour each selection is the only one of its time. */
  #emptied: PartitionEntries<T> | null = null;

  find(modelName: string, routingGroup: string): PartitionEntries<T> | undefined {
    return this.#models.get(modelName)?.get(routingGroup);
  }

  /** Gives the partition, a new one if there is none. The caller puts an entry in. */
  open(modelName: string, routingGroup: string): PartitionEntries<T> {
    let groups = this.#models.get(modelName);
    if (groups === undefined) {
      groups = new Map();
      this.#models.set(modelName, groups);
    }
    let partition = groups.get(routingGroup);
    if (partition === undefined) {
      partition = new PartitionEntries(modelName, routingGroup);
      groups.set(routingGroup, partition);
    }
    return partition;
  }

  /** Takes note that the last entry of a partition has gone. */
  close(partition: PartitionEntries<T>): void {
    const before = this.#emptied;
    if (before !== partition && before?.entries.size === 0) this.#forget(before);
    this.#emptied = partition;
  }

  /** Counts models and partitions, for tests that look inside. */
  inspect(): { models: number; partitions: number } {
    let partitions = 0;
    for (const groups of this.#models.values()) partitions += groups.size;
    return { models: this.#models.size, partitions };
  }

  #forget({ modelName, routingGroup }: RoutingPartition): void {
    const groups = this.#models.get(modelName);
    groups?.delete(routingGroup);
    if (groups?.size === 0) this.#models.delete(modelName);
  }
}
