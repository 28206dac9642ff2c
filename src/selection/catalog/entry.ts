import type { Partition } from "./partition.js";
import type { WorkerSettings } from "./registration.js";
import type { WorkerRow } from "./row.js";

/** Where a worker is in its life. Only a schedulable one is chosen. */
export type WorkerLifecycle = "incomplete" | "schedulable" | "draining" | "unschedulable";

/** What the catalog tells of a worker: a copy, which does not change. */
export interface WorkerRecord extends WorkerSettings {
  readonly lifecycle: WorkerLifecycle;
  /** Why the worker is not chosen; empty for a schedulable one. */
  readonly notSchedulableReasons: readonly string[];
}

/** One worker of the catalog. */
export class WorkerEntry {
  rows: WorkerRow[] = [];
  isDraining = false;
  /** Whether the worker can be chosen; its partition says so when anything has changed. */
  isSchedulable = false;

  constructor(
    public settings: WorkerSettings,
    readonly partition: Partition,
  ) {}

  /** Says why the worker is not chosen. */
  reasons(): string[] {
    const { settings, partition } = this;
    const reasons: string[] = [];
    if (partition.requiresEndpoint && !settings.endpoint) reasons.push("it has no endpoint");
    if (settings.blockSize === undefined) reasons.push("it has no blockSize");
    else if (settings.blockSize !== partition.blockSize) {
      reasons.push(`its blockSize is ${settings.blockSize}, but that of its partition is ${partition.blockSize}`);
    }
    return reasons;
  }

  record(): WorkerRecord {
    const reasons = this.reasons();
    if (this.isDraining) reasons.push("it is draining");
    const lifecycle = this.isDraining ? "draining" : reasons.length > 0 ? "incomplete" : "schedulable";
    return { ...this.settings, lifecycle, notSchedulableReasons: reasons };
  }
}
