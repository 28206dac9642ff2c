import type { WorkerRow } from "../workers.js";
import type { BookingInputs } from "./bookings.js";
import { type Decision, prefillTokensOf } from "./decide.js";
import type { ActiveLoad, Booking, BusyThresholds, Selection, SelectRequest } from "./types.js";

// What callers are told of decisions and bookings.

/**
 * Tells in one what was decided for a request and how it is booked. Field by field: V8 makes an object of two spread ones slow
 * to read, and keeps what it is made of beyond the next collection.
 */
export function bookedSelectionOf(selection: Selection, booking: Booking): Selection & Booking {
  return {
    selectionId: booking.selectionId,
    modelName: booking.modelName,
    routingGroup: booking.routingGroup,
    worker: booking.worker,
    endpoint: booking.endpoint,
    blockSize: selection.blockSize,
    islTokens: booking.islTokens,
    sequenceHashes: selection.sequenceHashes,
    overlapBlocks: selection.overlapBlocks,
    cachedTokens: selection.cachedTokens,
    effectivePrefillTokens: booking.effectivePrefillTokens,
    potentialDecodeBlocks: selection.potentialDecodeBlocks,
    decodeBusy: selection.decodeBusy,
    home: selection.home,
    decision: selection.decision,
    explanation: selection.explanation,
    trackPrefillTokens: booking.trackPrefillTokens,
    existing: booking.existing,
    expiresAtMs: booking.expiresAtMs,
  };
}

/** Tells what was decided for a request. */
export function selectionOf(request: SelectRequest, decision: Decision, busy: BusyThresholds): Selection {
  const { partition, row, prompt, blockSize, overlapBlocks, potentialDecodeBlocks } = decision;
  const { promptTokens, sequenceHashes } = prompt;
  const effectivePrefillTokens = prefillTokensOf(promptTokens, overlapBlocks, blockSize);
  return {
    selectionId: request.selectionId,
    modelName: partition.modelName,
    routingGroup: partition.routingGroup,
    worker: row.worker,
    endpoint: row.entry.settings.endpoint,
    blockSize,
    islTokens: promptTokens,
    sequenceHashes,
    overlapBlocks,
    cachedTokens: promptTokens - effectivePrefillTokens,
    effectivePrefillTokens,
    potentialDecodeBlocks,
    decodeBusy: decodeBusyOf(row, potentialDecodeBlocks, busy),
    home: decision.home,
    decision: decision.decision,
    explanation: decision.explanation,
  };
}

/** Tells what was decided when a request was booked that comes again: its worker stays, whatever is best by now. */
export function selectionAgain(
  { row, overlapBlocks, islTokens, effectivePrefillTokens }: BookingInputs,
  booking: Booking,
  sequenceHashes: BigUint64Array,
  busy: BusyThresholds,
): Selection & Booking {
  const { activeBlocks } = row.load; // its own are among them
  return {
    ...booking,
    blockSize: row.entry.settings.blockSize as number, // a worker that was chosen has one
    sequenceHashes,
    overlapBlocks,
    cachedTokens: islTokens - effectivePrefillTokens,
    potentialDecodeBlocks: activeBlocks,
    decodeBusy: decodeBusyOf(row, activeBlocks, busy),
  };
}

/** Tells what is booked on a rank. */
export function activeLoadOf({ worker, load }: WorkerRow): ActiveLoad {
  const { activePrefillTokens, activeBlocks, activeRequests } = load;
  return { worker, activePrefillTokens, activeBlocks, activeRequests };
}

function decodeBusyOf({ entry }: WorkerRow, blocks: number, { kvUsage }: BusyThresholds): boolean | undefined {
  const { totalKvBlocks } = entry.settings;
  return kvUsage === undefined || totalKvBlocks === undefined ? undefined : blocks > kvUsage * totalKvBlocks;
}
