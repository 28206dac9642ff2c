import { describe } from "../../core/describe.js";
import { checkRank, type WorkerKey, workerKey } from "../../core/worker-key.js";
import { ArgumentRangeError, ArgumentTypeError, NoWorkerError, WorkersBusyError } from "../../errors.js";
import { checkNumber, checkObject } from "../cache/checks.js";
import { checkName, TAINTS_MAX } from "../catalog/registration.js";
import type { WorkerRow } from "../catalog/row.js";
import type { BusyThresholds, ExcludedWorker, RoutingConstraints } from "./types.js";

export const ALLOWED_WORKERS_MAX = 65_536;

/** Constraints that were checked, in the form in which they are asked. */
interface Filters {
  readonly pinned: { readonly key: WorkerKey; readonly dpRank: number | undefined } | undefined;
  readonly allowed: ReadonlySet<WorkerKey> | undefined;
  readonly required: readonly string[];
  readonly preferred: readonly (readonly [taint: string, weight: number])[];
}

/** Who is left of the workers of a partition, and why the others are not, where that was asked. */
export interface Eligible {
  readonly rows: readonly WorkerRow[];
  readonly excluded: readonly ExcludedWorker[];
}

/**
 * Finds the workers that may serve a request, before any policy sees them, and sets how much each is preferred.
 *
 * @param rows the workers that can be chosen at all
 * @throws {NoWorkerError} `KVROUTE_NO_WORKER` if none passes the constraints
 * @throws {WorkersBusyError} `KVROUTE_WORKERS_BUSY` if all that pass them are busy
 */
export function findEligible(
  rows: readonly WorkerRow[],
  constraints: RoutingConstraints,
  busy: BusyThresholds,
  explain: boolean,
): Eligible {
  const filters = filtersOf(constraints);
  if (rows.length === 0) throw new NoWorkerError("none of this model and group is schedulable");
  const passed: WorkerRow[] = [];
  const excluded: ExcludedWorker[] = [];
  let busyRows = 0;
  for (const row of rows) {
    const barred = barredBy(row, filters);
    const reason = barred ?? busyBecause(row, busy);
    if (reason === undefined) passed.push(row);
    else if (barred === undefined) busyRows++;
    if (reason !== undefined && explain) excluded.push({ worker: row.worker, reason });
    row.preference = filters.preferred.length === 0 ? 0 : preferenceOf(row, filters);
  }
  if (passed.length > 0) return { rows: passed, excluded };
  if (busyRows > 0) throw new WorkersBusyError(busyRows);
  throw new NoWorkerError(`none of ${rows.length} schedulable ones passes its pin, allow-list and required taints`);
}

function filtersOf(constraints: RoutingConstraints): Filters {
  const { pinnedWorker, allowedWorkerIds, requiredTaints = [], preferredTaints = {} } = constraints;
  return {
    pinned: pinnedWorker === undefined ? undefined : pinOf(pinnedWorker),
    allowed: allowedWorkerIds === undefined ? undefined : allowedOf(allowedWorkerIds),
    required: taintsOf(requiredTaints),
    preferred: preferencesOf(preferredTaints),
  };
}

function pinOf(target: NonNullable<RoutingConstraints["pinnedWorker"]>): NonNullable<Filters["pinned"]> {
  checkObject(target, "pinnedWorker");
  const { workerId, dpRank } = target;
  return { key: workerKey(workerId), dpRank: dpRank === undefined ? undefined : checkRank(dpRank) };
}

function allowedOf(ids: NonNullable<RoutingConstraints["allowedWorkerIds"]>): ReadonlySet<WorkerKey> {
  checkList(ids, "allowedWorkerIds", ALLOWED_WORKERS_MAX);
  return new Set(ids.map(workerKey));
}

function taintsOf(taints: readonly string[]): readonly string[] {
  checkList(taints, "requiredTaints", TAINTS_MAX);
  taints.forEach((taint, index) => {
    checkName(taint, `requiredTaints[${index}]`);
  });
  return taints;
}

function preferencesOf(preferred: Readonly<Record<string, number>>): Filters["preferred"] {
  checkObject(preferred, "preferredTaints");
  const entries = Object.entries(preferred);
  checkList(entries, "preferredTaints", TAINTS_MAX);
  for (const [taint, weight] of entries) {
    checkNumber(weight, `preferredTaints["${taint}"]`);
    if (!Number.isFinite(weight)) {
      throw new ArgumentRangeError(`Expected preferredTaints["${taint}"] to be a finite number, got ${weight}.`);
    }
  }
  return entries;
}

function checkList(list: readonly unknown[], name: string, most: number): void {
  if (!Array.isArray(list)) throw new ArgumentTypeError(`Expected ${name} to be a list, got ${describe(list)}.`);
  if (list.length > most) throw new ArgumentRangeError(`Expected at most ${most} ${name}, got ${list.length}.`);
}

/** Says which constraint keeps a worker out, `undefined` if none does. */
function barredBy({ worker, entry }: WorkerRow, { pinned, allowed, required }: Filters): string | undefined {
  if (pinned !== undefined) {
    const isPinned = workerKey(worker.workerId) === pinned.key && (pinned.dpRank ?? worker.dpRank) === worker.dpRank;
    if (!isPinned) return "the request is pinned to another worker";
  }
  if (allowed !== undefined && !allowed.has(workerKey(worker.workerId))) return "it is not among the allowed workers";
  for (const taint of required) {
    if (!entry.settings.taints.includes(taint)) return `it lacks the required taint "${taint}"`;
  }
  return undefined;
}

/** Says which threshold a worker is above, `undefined` if none. */
export function busyBecause({ load, usage, entry }: WorkerRow, busy: BusyThresholds): string | undefined {
  const { activePrefillTokens, activeRequests } = load;
  const { maxNumBatchedTokens, totalKvBlocks } = entry.settings;
  const part = maxNumBatchedTokens === undefined ? undefined : activePrefillTokens / maxNumBatchedTokens;
  const inUse = usage?.kvUsage ?? (totalKvBlocks === undefined ? undefined : load.activeBlocks / totalKvBlocks);
  return (
    above("activePrefillTokens", activePrefillTokens, busy.activePrefillTokens) ??
    above("activePrefillFraction", part, busy.activePrefillFraction) ??
    above("kvUsage", inUse, busy.kvUsage) ??
    above("activeRequests", activeRequests, busy.activeRequests)
  );
}

function above(name: string, value: number | undefined, threshold: number | undefined): string | undefined {
  if (value === undefined || threshold === undefined || value <= threshold) return undefined;
  return `its ${name}, ${value}, is above the threshold ${threshold}`;
}

function preferenceOf({ entry }: WorkerRow, { preferred }: Filters): number {
  let sum = 0;
  for (const [taint, weight] of preferred) if (entry.settings.taints.includes(taint)) sum += weight;
  return sum;
}
