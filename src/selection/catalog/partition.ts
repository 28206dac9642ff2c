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
    const before = new Set(this.schedulable);
    this.schedulable = entries.filter((entry) => entry.isSchedulable).flatMap(({ rows }) => rows);
    const stayed = this.schedulable.filter((row) => before.has(row));
    if (stayed.length < this.schedulable.length)
      lift(
        this.schedulable.filter((row) => !before.has(row)),
        stayed,
      );
  }

  /** Does as `refresh` for a worker that has just come: it changes nothing for those before it, who may be thousands. */
  admit(entry: WorkerEntry): void {
    if (this.blockSize === undefined) {
      this.refresh();
      return;
    }
    entry.isSchedulable = !entry.isDraining && entry.reasons().length === 0;
    if (!entry.isSchedulable) return;
    lift(entry.rows, this.schedulable);
    this.schedulable = this.schedulable.concat(entry.rows);
  }

  #open(entry: WorkerEntry, { workerId, dpRank }: WorkerWithDpRank): WorkerRow {
    return new WorkerRow(entry, this.load.open(Object.freeze({ workerId, dpRank })));
  }
}

/**
 * Lets newcomers begin with what the one of the others has, for its weight, that computed least. A worker that joins, or
 * comes back from draining, has computed little yet: policies that even out what all have computed would send it everything
 * until it caught up.
 */
function lift(newcomers: readonly WorkerRow[], others: readonly WorkerRow[]): void {
  if (others.length === 0) return;
  let least = Number.POSITIVE_INFINITY;
  for (const { load, weight } of others) least = Math.min(least, load.missedBlocks / weight);
  for (const { load, weight } of newcomers) {
    load.missedBlocks = Math.max(load.missedBlocks, Math.round(least * weight));
  }
}
