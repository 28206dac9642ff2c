import type { BookedBlocks } from "../../core/booked-blocks.js";
import type { WorkerWithDpRank } from "../../core/keys.js";
import { type WorkerKey, workerKey } from "../../core/worker-key.js";
import type { RoutingPartition } from "../cache/types.js";
import { BookedLoad } from "../load.js";
import type { WorkerEntry } from "./entry.js";
import { WorkerRow } from "./row.js";

/** The workers that serve one model in one group, and what is booked on them. It exists while it has workers. */
export class Partition implements RoutingPartition {
  readonly load: BookedLoad;
  /** In the order of registration. */
  readonly entries = new Set<WorkerEntry>();
  /** The rows that can be chosen, in the order of registration of their workers, then by rank. */
  schedulable: readonly WorkerRow[] = [];
  /** That of the first worker that says one: hashes of others would not compare. */
  blockSize: number | undefined;
  readonly #rows = new Map<WorkerKey, Map<number, WorkerRow>>();
  /** The rows by the objects under which the tables in the core know their workers: the same ones, time after time. */
  #rowsByObject = new WeakMap<WorkerWithDpRank, WorkerRow>();

  constructor(
    readonly modelName: string,
    readonly routingGroup: string,
    readonly requiresEndpoint: boolean,
    readonly blocks: BookedBlocks,
  ) {
    this.load = new BookedLoad(blocks);
  }

  /** Finds the row of a worker's rank. */
  find({ workerId, dpRank }: WorkerWithDpRank): WorkerRow | undefined {
    return this.#rows.get(workerKey(workerId))?.get(dpRank);
  }

  /** Does as `find` for an object that comes again with every request. */
  findSame(worker: WorkerWithDpRank): WorkerRow | undefined {
    const known = this.#rowsByObject.get(worker);
    if (known !== undefined) return known;
    const row = this.find(worker);
    if (row !== undefined) this.#rowsByObject.set(worker, row);
    return row;
  }

  /** Adds a row for each rank of a worker that has none, and takes those away whose rank has gone. Returns the latter. */
  alignRows(entry: WorkerEntry): WorkerRow[] {
    const { workerId, dataParallelStartRank: start, dataParallelSize: size } = entry.settings;
    const key = workerKey(workerId);
    const ranks = this.#rows.get(key) ?? new Map<number, WorkerRow>();
    this.#rows.set(key, ranks);
    const gone = entry.rows.filter(({ worker }) => worker.dpRank < start || worker.dpRank >= start + size);
    for (const { worker } of gone) ranks.delete(worker.dpRank);
    for (let dpRank = start; dpRank < start + size; dpRank++) {
      if (!ranks.has(dpRank)) ranks.set(dpRank, this.#open(entry, { workerId, dpRank }));
    }
    entry.rows = [...ranks.values()].sort((a, b) => a.worker.dpRank - b.worker.dpRank);
    return gone;
  }

  /** Takes a worker away with all its rows. */
  removeEntry(entry: WorkerEntry): void {
    this.entries.delete(entry);
    this.#rows.delete(workerKey(entry.settings.workerId));
    this.refresh();
  }

  /** Settles the block size and who can be chosen, after a worker has come, gone or changed. */
  refresh(): void {
    this.#rowsByObject = new WeakMap();
    const entries = [...this.entries];
    if (!entries.some(({ settings }) => settings.blockSize === this.blockSize)) this.blockSize = undefined;
    this.blockSize ??= entries.find(({ settings }) => settings.blockSize !== undefined)?.settings.blockSize;
    for (const entry of entries) entry.isSchedulable = !entry.isDraining && entry.reasons().length === 0;
    const before = this.schedulable;
    this.schedulable = entries.filter((entry) => entry.isSchedulable).flatMap(({ rows }) => rows);
    this.#liftNewcomers(before);
  }

  #open(entry: WorkerEntry, { workerId, dpRank }: WorkerWithDpRank): WorkerRow {
    return new WorkerRow(entry, this.load.open(Object.freeze({ workerId, dpRank })));
  }

  // A worker that joins, or comes back from draining, has computed little yet: policies that even out what all have computed
  // would send it everything until it caught up. It begins with what the one has, for its weight, that computed least.
  #liftNewcomers(before: readonly WorkerRow[]): void {
    const present = new Set(this.schedulable);
    const stayed = new Set(before.filter((row) => present.has(row)));
    if (stayed.size === 0) return;
    const least = Math.min(...[...stayed].map(({ load, weight }) => load.missedBlocks / weight));
    for (const { load, weight } of this.schedulable.filter((row) => !stayed.has(row))) {
      load.missedBlocks = Math.max(load.missedBlocks, Math.round(least * weight));
    }
  }
}
