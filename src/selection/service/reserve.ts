import type { WorkerWithDpRank } from "../../core/keys.js";
import { ArgumentRangeError, UnknownSelectionError, UnknownWorkerError } from "../../errors.js";
import type { PendingSelection, RoutingPartition } from "../cache/types.js";
import type { SelectionCache } from "../cache.js";
import { checkName, checkWhole } from "../catalog/registration.js";
import type { WorkerCatalog, WorkerRow } from "../workers.js";
import type { BookingInputs } from "./bookings.js";
import { blockSizeOf, type Decider, prefillTokensOf } from "./decide.js";
import type { Ledger } from "./ledger.js";
import { resolvePrompt } from "./prompt.js";
import type { Booking, PartitionRequest, ReserveRequest } from "./types.js";

/** A selection as the service keeps it, with what booking it takes besides. */
export interface KeptSelection extends PendingSelection {
  readonly overlapBlocks: number;
  readonly session?: string | undefined;
  readonly tenant: string;
}

/** What reserving takes. */
export interface ReserverParts {
  readonly workers: WorkerCatalog;
  readonly cache: SelectionCache;
  readonly decider: Decider;
  readonly ledger: Ledger;
  readonly trackPrefillTokens: boolean;
}

/** Books what was selected before, or what a caller has chosen. Where it fails, nothing is booked and nothing forgotten. */
export class Reserver {
  readonly #parts: ReserverParts;

  constructor(parts: ReserverParts) {
    this.#parts = parts;
  }

  /** Books what was selected under an id. */
  reserveSelected(request: ReserveRequest, nowMs: number): Booking {
    const { cache, ledger } = this.#parts;
    const { selectionId } = request;
    const names = namesOf(request);
    const known = ledger.find(selectionId);
    const pending = cache.peek(names, selectionId, nowMs);
    if (pending === null) {
      if (known === undefined) throw new UnknownSelectionError(selectionId);
      return ledger.again(known, { ...known.inputs, partition: this.#parts.workers.partition(names) }, nowMs);
    }
    const selection = pending.selection as KeptSelection; // the service inserts no others
    const row = this.#rowOf(names, selection.worker);
    const booking =
      known === undefined
        ? ledger.book(selectionId, inputsOf(selection, row), nowMs)
        : ledger.again(known, inputsOf(selection, row), nowMs);
    cache.remove(names, selectionId, pending.generation); // a newer selection stays
    return booking;
  }

  /** Books a request on the worker that it names. Whatever was selected under its id is forgotten. */
  reserveStated(request: ReserveRequest, worker: WorkerWithDpRank, nowMs: number): Booking {
    const { cache, ledger, decider } = this.#parts;
    const { selectionId, expectedOutputTokens, effectivePrefillTokens: stated, session, tenant = "" } = request;
    const names = namesOf(request);
    const row = this.#rowOf(names, worker);
    const { partition } = row.entry;
    const blockSize = blockSizeOf(partition);
    const prompt = resolvePrompt(request, blockSize);
    const { promptTokens, sequenceHashes } = prompt;
    checkCounts(request, promptTokens);
    decider.consider(partition, prompt, nowMs);
    const computed = stated ?? prefillTokensOf(promptTokens, row.overlapBlocks, blockSize);
    const inputs: BookingInputs = {
      partition,
      row,
      sequenceHashes: sequenceHashes.slice(),
      islTokens: promptTokens,
      effectivePrefillTokens: computed,
      statedPrefillTokens: stated,
      trackPrefillTokens: request.trackPrefillTokens ?? (stated !== undefined || this.#parts.trackPrefillTokens),
      expectedOutputTokens,
      session,
      tenant,
      overlapBlocks: Math.min(sequenceHashes.length, Math.floor((promptTokens - computed) / blockSize)),
    };
    const known = ledger.find(selectionId);
    const booking = known === undefined ? ledger.book(selectionId, inputs, nowMs) : ledger.again(known, inputs, nowMs);
    cache.discard(names, selectionId);
    return booking;
  }

  /** The row of a worker that can still be chosen. */
  #rowOf(names: RoutingPartition, worker: WorkerWithDpRank): WorkerRow {
    const row = this.#parts.workers.rowOf(worker);
    const { settings, isSchedulable } = row.entry;
    if (settings.modelName !== names.modelName || settings.routingGroup !== names.routingGroup) {
      const where = `model "${names.modelName}" in group "${names.routingGroup}"`;
      throw new UnknownWorkerError(`${worker.workerId}`, `does not serve ${where}`);
    }
    if (!isSchedulable) throw new UnknownWorkerError(`${worker.workerId}`, "cannot be chosen any more");
    return row;
  }
}

/** Names the partition of a request. */
export function namesOf({ modelName = "default", routingGroup = "default" }: PartitionRequest): RoutingPartition {
  checkName(modelName, "modelName");
  checkName(routingGroup, "routingGroup");
  return { modelName, routingGroup };
}

/** Makes the inputs of a booking from a selection. */
export function inputsOf(selection: KeptSelection, row: WorkerRow): BookingInputs {
  const { sequenceHashes, islTokens, effectivePrefillTokens, trackPrefillTokens } = selection;
  const { expectedOutputTokens, session, tenant, overlapBlocks } = selection;
  return {
    partition: row.entry.partition,
    row,
    sequenceHashes: sequenceHashes.slice(), // the caller of select has them as well, and may write to them
    islTokens,
    effectivePrefillTokens,
    trackPrefillTokens,
    expectedOutputTokens,
    session,
    tenant,
    overlapBlocks,
  };
}

function checkCounts({ expectedOutputTokens, effectivePrefillTokens }: ReserveRequest, promptTokens: number): void {
  if (expectedOutputTokens !== undefined) {
    checkWhole(expectedOutputTokens, "expectedOutputTokens", 0, Number.MAX_SAFE_INTEGER);
  }
  if (effectivePrefillTokens === undefined) return;
  checkWhole(effectivePrefillTokens, "effectivePrefillTokens", 0, Number.MAX_SAFE_INTEGER);
  if (effectivePrefillTokens <= promptTokens) return;
  throw new ArgumentRangeError(
    `Expected effectivePrefillTokens to be at most the ${promptTokens} tokens of the prompt, got ${effectivePrefillTokens}.`,
  );
}
