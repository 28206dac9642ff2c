import { BookedBlocks } from "../core/booked-blocks.js";
import type { WorkerId, WorkerWithDpRank } from "../core/keys.js";
import { type WorkerKey, workerKey } from "../core/worker-key.js";
import { ArgumentRangeError, SelectionLimitError, UnknownWorkerError } from "../errors.js";
import { checkNumber, checkObject, checkWhole } from "./cache/checks.js";
import type { RoutingPartition } from "./cache/types.js";
import { WorkerEntry, type WorkerLifecycle, type WorkerRecord } from "./catalog/entry.js";
import { Partition } from "./catalog/partition.js";
import {
  settingsOf,
  updatedSettings,
  type WorkerRegistration,
  type WorkerSettings,
  type WorkerUpdate,
} from "./catalog/registration.js";
import { type ReportedUsage, WorkerRow } from "./catalog/row.js";

export type { ReportedUsage, WorkerLifecycle, WorkerRecord, WorkerRegistration, WorkerUpdate };
export { Partition, WorkerRow };

export interface WorkerCatalogOptions {
  /** Workers that are registered at a time. Default 16,384. */
  readonly maxWorkers?: number | undefined;
  /** Partitions that have workers at a time. Default 1,024. */
  readonly maxPartitions?: number | undefined;
  /** Whether a worker without an endpoint stays incomplete, as Dynamo has it. Default false. */
  readonly requireEndpoint?: boolean | undefined;
}

export const WORKERS_DEFAULT = 16_384;
export const PARTITIONS_DEFAULT = 1_024;
const LIMIT_MAX = 16_777_215;
const SPARE_BLOCKS_MAX = 8;

/** Who wants to know of ranks that come and go: of one that has gone it forgets all it knows. */
export interface CatalogListener {
  /** A rank is there, or what is said of its worker has changed. */
  onRankSettled(row: WorkerRow): void;
  /** Ranks have gone of a worker that stays. */
  onRanksGone(rows: readonly WorkerRow[]): void;
  /** A worker has gone with all its ranks. */
  onWorkerGone(workerId: WorkerId, rows: readonly WorkerRow[]): void;
  /** A change is complete: the catalog may be called again. */
  onChanged(): void;
}

/**
 * Knows the workers: what they serve, how they are cut into ranks, and whether they can be chosen. Ids are unique over all
 * partitions. A worker that was removed and comes back starts empty.
 */
export class WorkerCatalog {
  readonly #maxWorkers: number;
  readonly #maxPartitions: number;
  readonly #requireEndpoint: boolean;
  readonly #listener: CatalogListener;
  readonly #entries = new Map<WorkerKey, WorkerEntry>();
  readonly #partitions = new Map<string, Map<string, Partition>>();
  /** Tables of partitions that have closed: adapters come and go, and an instance of the core is dear to make. */
  readonly #spareBlocks: BookedBlocks[] = [];
  #partitionCount = 0;

  /** @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a limit is out of range */
  constructor(options: WorkerCatalogOptions, listener: CatalogListener) {
    this.#maxWorkers = options.maxWorkers ?? WORKERS_DEFAULT;
    this.#maxPartitions = options.maxPartitions ?? PARTITIONS_DEFAULT;
    this.#requireEndpoint = options.requireEndpoint ?? false;
    this.#listener = listener;
    checkWhole(this.#maxWorkers, "maxWorkers", 1, LIMIT_MAX);
    checkWhole(this.#maxPartitions, "maxPartitions", 1, LIMIT_MAX);
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Adds a worker, or replaces the one with its id. What is booked on ranks that it still has stays, unless it moves to
   * another partition or has another block size: then it starts empty. One that was draining can be chosen again.
   *
   * @returns its record: a worker that lacks something is registered and `incomplete`
   * @throws {SelectionLimitError} `KVROUTE_CATALOG_FULL` if there are as many workers or partitions as there may be
   */
  add(registration: WorkerRegistration): WorkerRecord {
    const settings = settingsOf(registration);
    return this.#changing(() => this.#put(settings, this.#entries.get(workerKey(settings.workerId)), false));
  }

  /**
   * Changes what is given of a worker.
   *
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id
   */
  update(workerId: WorkerId, update: WorkerUpdate): WorkerRecord {
    const known = this.#get(workerId);
    const settings = updatedSettings(known.settings, update);
    return this.#changing(() => this.#put(settings, known, known.isDraining));
  }

  /**
   * Removes a worker: its bookings are freed, and what is known of its cache and its sessions is forgotten.
   *
   * @returns its last record
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id
   */
  remove(workerId: WorkerId): WorkerRecord {
    const entry = this.#get(workerId);
    const record = entry.record();
    this.#changing(() => this.#removeEntry(entry));
    return { ...record, lifecycle: "unschedulable", notSchedulableReasons: ["it was removed"] };
  }

  /**
   * Lets a worker finish what it has and gives it nothing more.
   *
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id
   */
  drain(workerId: WorkerId): WorkerRecord {
    const entry = this.#get(workerId);
    entry.isDraining = true;
    entry.partition.refresh();
    return entry.record();
  }

  /** Gives the record of a worker, `undefined` if there is none. */
  get(workerId: WorkerId): WorkerRecord | undefined {
    return this.#entries.get(workerKey(workerId))?.record();
  }

  /** Lists the records of all workers, or of those in a partition, in the order in which they were first added. */
  list(filter: Partial<RoutingPartition> = {}): WorkerRecord[] {
    const { modelName, routingGroup } = filter;
    return [...this.#entries.values()]
      .filter(({ settings }) => modelName === undefined || settings.modelName === modelName)
      .filter(({ settings }) => routingGroup === undefined || settings.routingGroup === routingGroup)
      .map((entry) => entry.record());
  }

  /**
   * Takes down what a worker says of its load, in the place of what it said before.
   *
   * @throws {UnknownWorkerError} `KVROUTE_UNKNOWN_WORKER` if no worker has the id and rank
   */
  reportUsage(worker: WorkerWithDpRank, usage: ReportedUsage): void {
    checkObject(usage, "usage");
    const { kvUsage, runningRequests, waitingRequests } = usage;
    if (kvUsage !== undefined) {
      checkNumber(kvUsage, "kvUsage");
      if (!(kvUsage >= 0 && kvUsage <= 1)) {
        throw new ArgumentRangeError(`Expected kvUsage to be from 0 to 1, got ${kvUsage}.`);
      }
    }
    for (const [name, count] of Object.entries({ runningRequests, waitingRequests })) {
      if (count !== undefined) checkWhole(count, name, 0, Number.MAX_SAFE_INTEGER);
    }
    this.rowOf(worker).usage = { kvUsage, runningRequests, waitingRequests };
  }

  /** @internal The row of a worker's rank. */
  rowOf(worker: WorkerWithDpRank): WorkerRow {
    const entry = this.#get(worker.workerId);
    const row = entry.partition.find(worker);
    if (row === undefined) throw new UnknownWorkerError(`${worker.workerId}`, `has no rank ${worker.dpRank}`);
    return row;
  }

  /** @internal The partition of a name, `undefined` while it has no workers. */
  partition({ modelName, routingGroup }: RoutingPartition): Partition | undefined {
    return this.#partitions.get(modelName)?.get(routingGroup);
  }

  /** @internal All partitions that have workers. */
  *partitions(): IterableIterator<Partition> {
    for (const groups of this.#partitions.values()) yield* groups.values();
  }

  #get(workerId: WorkerId): WorkerEntry {
    const entry = this.#entries.get(workerKey(workerId));
    if (entry === undefined) throw new UnknownWorkerError(`${workerId}`);
    return entry;
  }

  /** Makes a change, and says when it is complete, also where somebody has thrown. */
  #changing<Result>(change: () => Result): Result {
    try {
      return change();
    } finally {
      this.#listener.onChanged();
    }
  }

  #put(settings: WorkerSettings, known: WorkerEntry | undefined, isDraining: boolean): WorkerRecord {
    const stays = known !== undefined && isSameCache(known, settings);
    if (known === undefined && this.#entries.size >= this.#maxWorkers) {
      throw new SelectionLimitError("KVROUTE_CATALOG_FULL", "workers (maxWorkers)", this.#maxWorkers);
    }
    if (stays) {
      known.settings = settings;
      known.isDraining = isDraining;
      this.#align(known);
      return known.record();
    }
    const partition = this.#openPartition(settings);
    const entry = new WorkerEntry(settings, partition);
    entry.isDraining = isDraining;
    partition.entries.add(entry); // first, lest the partition close with the worker that it moves from
    if (known !== undefined) this.#removeEntry(known);
    this.#entries.set(workerKey(settings.workerId), entry);
    partition.alignRows(entry);
    partition.admit(entry);
    for (const row of entry.rows) this.#listener.onRankSettled(row);
    return entry.record();
  }

  #align(entry: WorkerEntry): void {
    const { partition } = entry;
    const gone = partition.alignRows(entry);
    partition.refresh();
    if (gone.length > 0) this.#listener.onRanksGone(gone);
    for (const row of entry.rows) this.#listener.onRankSettled(row);
  }

  #removeEntry(entry: WorkerEntry): void {
    const { partition, rows } = entry;
    const { workerId } = entry.settings;
    this.#entries.delete(workerKey(workerId));
    partition.removeEntry(entry);
    try {
      this.#listener.onWorkerGone(workerId, rows);
    } finally {
      if (partition.entries.size === 0) this.#closePartition(partition); // also where a policy has thrown
    }
  }

  #openPartition({ modelName, routingGroup }: RoutingPartition): Partition {
    const known = this.#partitions.get(modelName)?.get(routingGroup);
    if (known !== undefined) return known;
    if (this.#partitionCount >= this.#maxPartitions) {
      throw new SelectionLimitError("KVROUTE_CATALOG_FULL", "partitions (maxPartitions)", this.#maxPartitions);
    }
    const partition = new Partition(
      modelName,
      routingGroup,
      this.#requireEndpoint,
      this.#spareBlocks.pop() ?? new BookedBlocks(),
    );
    const groups = this.#partitions.get(modelName);
    if (groups === undefined) this.#partitions.set(modelName, new Map([[routingGroup, partition]]));
    else groups.set(routingGroup, partition);
    this.#partitionCount++;
    return partition;
  }

  #closePartition(partition: Partition): void {
    const groups = this.#partitions.get(partition.modelName);
    groups?.delete(partition.routingGroup);
    if (groups?.size === 0) this.#partitions.delete(partition.modelName);
    this.#partitionCount--;
    const { blocks } = partition;
    if (this.#spareBlocks.length < SPARE_BLOCKS_MAX && blocks.size.entries === 0) this.#spareBlocks.push(blocks);
    else blocks.dispose();
  }
}

/** Tells whether a worker keeps what it has: hashes of another block size would not compare. */
function isSameCache({ settings: known }: WorkerEntry, settings: WorkerSettings): boolean {
  const isSameSize = known.blockSize === undefined || known.blockSize === settings.blockSize;
  return isSameSize && known.modelName === settings.modelName && known.routingGroup === settings.routingGroup;
}
