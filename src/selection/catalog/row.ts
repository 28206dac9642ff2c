import type { WorkerWithDpRank } from "../../core/keys.js";
import type { WorkerLoad } from "../load.js";
import type { Candidate } from "../policy.js";
import type { WorkerEntry } from "./entry.js";

/** What a worker says of itself. It stands beside what was booked and is never mixed with it. */
export interface ReportedUsage {
  /** Part of the KV cache in use, 0 to 1. */
  readonly kvUsage?: number | undefined;
  /** Requests that the engine runs. */
  readonly runningRequests?: number | undefined;
  /** Requests that wait in the engine. */
  readonly waitingRequests?: number | undefined;
}

/** One rank of a worker, and what a policy sees of it. The overlaps are those of the request that is being decided. */
export class WorkerRow implements Candidate {
  readonly worker: WorkerWithDpRank;
  readonly load: WorkerLoad;
  overlapBlocks = 0;
  activeOverlapBlocks = 0;
  preference = 0;
  usage: ReportedUsage | undefined;
  /** How many blocks the index keeps of it; `undefined` while it keeps as many as of anybody. */
  indexLimit: number | undefined;
  /** The cache size that this limit began with. */
  statedKvBlocks: number | undefined;

  constructor(
    readonly entry: WorkerEntry,
    load: WorkerLoad,
  ) {
    this.worker = load.worker;
    this.load = load;
  }

  get weight(): number {
    return this.entry.settings.weight;
  }
}
