import type { WorkerWithDpRank } from "../../core/keys.js";
import type { Booking, Explanation, Selection, SelectionService } from "../../selection/service.js";
import { ok } from "../answer.js";
import { operation } from "../operation.js";
import { selectAndReserveAnswer, selectAnswer } from "../schemas/answers.js";
import { selectAndReserveBody, selectBody, selectRequestOf } from "../schemas/select.js";

export const selectionOperations = [
  operation({
    id: "select",
    method: "POST",
    path: "/select",
    summary: "Chooses a worker and books nothing. With a selection_id the choice can be booked for a while.",
    body: selectBody,
    answers: { 200: selectAnswer },
    errors: [429, 503],
    run: ({ service, body }) => {
      const selection = service.select(selectRequestOf(body));
      const load = body.advisory === true ? workerLoadOf(service, selection) : undefined;
      return ok({ ...selectionWire(selection), worker_load: load });
    },
  }),
  operation({
    id: "selectAndReserve",
    method: "POST",
    path: "/select_and_reserve",
    summary: "Chooses a worker and books the request there in one.",
    body: selectAndReserveBody,
    answers: { 200: selectAndReserveAnswer },
    errors: [409, 429, 503],
    run: ({ service, body }) => ok(bookedWire(service.selectAndReserve(selectRequestOf(body)))),
  }),
];

/** Writes a worker and its rank into an answer. */
export const rankWire = ({ workerId, dpRank }: WorkerWithDpRank) => ({ worker_id: workerId, dp_rank: dpRank });

function selectionWire(selection: Selection) {
  const { worker, overlapBlocks, blockSize, explanation } = selection;
  const matched = overlapBlocks * blockSize;
  return {
    selection_id: selection.selectionId,
    model_name: selection.modelName,
    routing_group: selection.routingGroup,
    ...rankWire(worker),
    endpoint: selection.endpoint,
    block_size: blockSize,
    // Each tier counts those above it as well, and of those below the device nothing is known.
    overlap: { longest_matched: matched, gpu: matched, dp: { [worker.dpRank]: matched }, cpu: matched, disk: matched },
    effective_prefill_tokens: selection.effectivePrefillTokens,
    potential_decode_blocks: Math.round(selection.potentialDecodeBlocks),
    decode_busy: selection.decodeBusy,
    session_decision: selection.decision,
    explanation: explanation === undefined ? undefined : explanationWire(explanation),
  };
}

function bookedWire(booked: Selection & Booking) {
  return {
    ...selectionWire(booked),
    sequence_hashes: Array.from(booked.sequenceHashes, (hash) => BigInt.asIntN(64, hash)),
    isl_tokens: booked.islTokens,
    track_prefill_tokens: booked.trackPrefillTokens,
    existing: booked.existing,
  };
}

function explanationWire({ policy, hotBlocks, averageMissedTokens, candidates, excluded }: Explanation) {
  return {
    policy,
    hot_blocks: hotBlocks,
    average_missed_tokens: averageMissedTokens,
    candidates: candidates.map(({ worker, isChosen, overlapBlocks, terms }) => ({
      ...rankWire(worker),
      is_chosen: isChosen,
      overlap_blocks: overlapBlocks,
      terms,
    })),
    excluded: excluded.map(({ worker, reason }) => ({ ...rankWire(worker), reason })),
  };
}

function workerLoadOf({ workers }: SelectionService, { worker }: Selection) {
  const { load, entry } = workers.rowOf(worker);
  return {
    active_prefill_tokens: load.activePrefillTokens,
    prefill_token_capacity: entry.settings.maxNumBatchedTokens,
    total_kv_blocks: entry.settings.totalKvBlocks,
  };
}
