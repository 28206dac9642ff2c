import type { WorkerWithDpRank } from "../../core/keys.js";
import { ArgumentRangeError, UnknownSelectionError, UnknownWorkerError } from "../../errors.js";
import { checkWhole } from "../cache/checks.js";
import type { PendingSelection, RoutingPartition } from "../cache/types.js";
import type { SelectionCache } from "../cache.js";
import { checkName } from "../catalog/registration.js";
import { sessionNamed } from "../sessions.js";
import type { WorkerCatalog, WorkerRow } from "../workers.js";
import type { BookingInputs, LiveBooking } from "./bookings.js";
import { blockSizeOf, type Decider, prefillTokensOf } from "./decide.js";
import type { Ledger } from "./ledger.js";
import { PROMPT_TOKENS_MAX, resolvePrompt } from "./prompt.js";
import type { Booking, PartitionRequest, ReserveRequest } from "./types.js";

/** A selection as the service keeps it, with what booking it takes besides. */
export interface KeptSelection extends PendingSelection {
  readonly row: WorkerRow;
  readonly overlapBlocks: number;
  readonly session?: string | undefined;
  readonly tenant: string;
}

/** A selection of the service, or one that its caller put into the cache. */
type Selected = PendingSelection & Partial<KeptSelection>;

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
    const row = this.#rowOf(names, pending.selection.worker, known);
    const inputs = inputsOf(this.#refreshed(pending.selection, row, nowMs), row);
    const booking = known === undefined ? ledger.book(selectionId, inputs, nowMs) : ledger.again(known, inputs, nowMs);
    cache.remove(names, selectionId, pending.generation); // a newer selection stays
    return booking;
  }

  /** Books a request on the worker that it names. Whatever was selected under its id is forgotten. */
  reserveStated(request: ReserveRequest, worker: WorkerWithDpRank, nowMs: number): Booking {
    const { cache, ledger, decider } = this.#parts;
    const { selectionId, expectedOutputTokens, effectivePrefillTokens: stated } = request;
    const names = namesOf(request);
    const known = ledger.find(selectionId);
    const row = this.#rowOf(names, worker, known);
    const { partition } = row.entry;
    const blockSize = blockSizeOf(partition);
    const prompt = resolvePrompt(request, blockSize);
    const { promptTokens, sequenceHashes } = prompt;
    checkCounts(request, promptTokens);
    const { session, tenant } = sessionNamed(request);
    decider.consider(partition, prompt, nowMs);
    const computed = stated ?? prefillTokensOf(promptTokens, row.overlapBlocks, blockSize);
    const inputs: BookingInputs = {
      partition,
      row,
      sequenceHashes: sequenceHashes.slice(), // short ones share a buffer, which would live as long as the booking
      islTokens: promptTokens,
      effectivePrefillTokens: computed,
      statedPrefillTokens: stated,
      trackPrefillTokens: request.trackPrefillTokens ?? (stated !== undefined || this.#parts.trackPrefillTokens),
      expectedOutputTokens,
      session,
      tenant,
      overlapBlocks: overlapBlocksOf(sequenceHashes.length, promptTokens - computed, blockSize),
    };
    const booking = known === undefined ? ledger.book(selectionId, inputs, nowMs) : ledger.again(known, inputs, nowMs);
    cache.discard(names, selectionId);
    return booking;
  }

  /** A selection as it is for its worker now: one that was removed and came back holds nothing of what it held then. */
  #refreshed(selection: Selected, row: WorkerRow, nowMs: number): Selected {
    if (selection.row === undefined) checkForeign(selection);
    if (selection.row === undefined || selection.row === row) return selection;
    const { partition } = row.entry;
    const blockSize = blockSizeOf(partition);
    if (selection.row.entry.settings.blockSize !== blockSize) {
      throw new UnknownWorkerError(
        `${row.worker.workerId}`,
        `has had another blockSize, ${blockSize}, since it was selected`,
      );
    }
    const { sequenceHashes, islTokens } = selection;
    this.#parts.decider.consider(partition, { sequenceHashes, promptTokens: islTokens }, nowMs);
    const { overlapBlocks } = row;
    return {
      ...selection,
      overlapBlocks,
      effectivePrefillTokens: prefillTokensOf(islTokens, overlapBlocks, blockSize),
    };
  }

  /** The row of a worker that can still be chosen, or that has the booking already. */
  #rowOf(names: RoutingPartition, worker: WorkerWithDpRank, known: LiveBooking | undefined): WorkerRow {
    const row = this.#parts.workers.rowOf(worker);
    const { settings, isSchedulable } = row.entry;
    if (settings.modelName !== names.modelName || settings.routingGroup !== names.routingGroup) {
      const where = `model "${names.modelName}" in group "${names.routingGroup}"`;
      throw new UnknownWorkerError(`${worker.workerId}`, `does not serve ${where}`);
    }
    if (isSchedulable || known?.inputs.row === row) return row;
    throw new UnknownWorkerError(`${worker.workerId}`, "cannot be chosen any more");
  }
}

/** Names the partition of a request. */
export function namesOf({ modelName = "default", routingGroup = "default" }: PartitionRequest): RoutingPartition {
  checkName(modelName, "modelName");
  checkName(routingGroup, "routingGroup");
  return { modelName, routingGroup };
}

/** Makes the inputs of a booking from a selection. */
export function inputsOf(selection: Selected, row: WorkerRow): BookingInputs {
  const { sequenceHashes, islTokens, effectivePrefillTokens, trackPrefillTokens } = selection;
  const { expectedOutputTokens, session, tenant = "" } = selection;
  const { partition } = row.entry;
  const cachedTokens = islTokens - effectivePrefillTokens;
  const { overlapBlocks = overlapBlocksOf(sequenceHashes.length, cachedTokens, blockSizeOf(partition)) } = selection;
  return {
    partition,
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

/** Checks the numbers of a selection that the service has not made. The cache has checked the rest. */
function checkForeign(selection: PendingSelection): void {
  checkWhole(selection.islTokens, "islTokens", 1, PROMPT_TOKENS_MAX);
  checkCounts(selection, selection.islTokens);
}

/** Whole blocks among the cached tokens of a prompt of so many blocks. */
function overlapBlocksOf(blocks: number, cachedTokens: number, blockSize: number): number {
  return Math.min(blocks, Math.floor(cachedTokens / blockSize));
}

/** Checks how long an answer is expected to be, where that is said. */
export function checkOutputTokens(tokens: number | undefined): void {
  if (tokens !== undefined) checkWhole(tokens, "expectedOutputTokens", 0, Number.MAX_SAFE_INTEGER);
}

function checkCounts(
  {
    expectedOutputTokens,
    effectivePrefillTokens,
  }: Pick<ReserveRequest, "expectedOutputTokens" | "effectivePrefillTokens">,
  promptTokens: number,
): void {
  checkOutputTokens(expectedOutputTokens);
  if (effectivePrefillTokens === undefined) return;
  checkWhole(effectivePrefillTokens, "effectivePrefillTokens", 0, Number.MAX_SAFE_INTEGER);
  if (effectivePrefillTokens <= promptTokens) return;
  throw new ArgumentRangeError(
    `Expected effectivePrefillTokens to be at most the ${promptTokens} tokens of the prompt, got ${effectivePrefillTokens}.`,
  );
}
