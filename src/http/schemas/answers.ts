import * as z from "zod";
import { finite, flag, hash, object, rank, whole, workerId } from "./fields.js";

// What is answered. Fields marked optional are left out where there is nothing to say.

const text = z.string();
const count = whole(0);
const partition = { model_name: text, routing_group: text };
const ranked = { worker_id: workerId, dp_rank: rank };

export const doneAnswer = object({ status: z.literal("ok") });

export const errorAnswer = object({ error: text, code: text });

export const workerAnswer = object({
  worker_id: workerId,
  ...partition,
  endpoint: text.optional(),
  block_size: count.optional(),
  data_parallel_start_rank: rank,
  data_parallel_size: count,
  max_num_batched_tokens: count.optional(),
  total_kv_blocks: count.optional(),
  weight: finite(),
  taints: z.array(text),
  lifecycle: z.enum(["incomplete", "schedulable", "draining", "unschedulable"]),
  not_schedulable_reasons: z.array(text).optional(),
});

export const workersAnswer = z.array(workerAnswer);

export const readyAnswer = object({ ready: flag, schedulable_workers: count, workers: workersAnswer });

const overlap = object({
  longest_matched: count,
  gpu: count,
  dp: z.record(text, count),
  cpu: count,
  disk: count,
});

const workerLoad = object({
  active_prefill_tokens: count,
  prefill_token_capacity: count.optional(),
  total_kv_blocks: count.optional(),
});

const explanation = object({
  policy: text,
  hot_blocks: count,
  average_missed_tokens: finite(),
  candidates: z.array(object({ ...ranked, is_chosen: flag, overlap_blocks: count, terms: z.record(text, finite()) })),
  excluded: z.array(object({ ...ranked, reason: text })),
});

const selection = {
  selection_id: text.optional(),
  ...partition,
  ...ranked,
  endpoint: text.optional(),
  block_size: count,
  overlap,
  effective_prefill_tokens: count,
  potential_decode_blocks: count,
  decode_busy: flag.optional(),
  session_decision: z.enum(["initialize", "retain", "switch", "spill"]).optional(),
  explanation: explanation.optional(),
};

export const selectAnswer = object({ ...selection, worker_load: workerLoad.optional() });

export const selectAndReserveAnswer = object({
  ...selection,
  selection_id: text,
  sequence_hashes: z.array(hash),
  isl_tokens: count,
  track_prefill_tokens: flag,
  existing: flag,
});

export const reservationAnswer = object({
  selection_id: text,
  ...partition,
  ...ranked,
  endpoint: text.optional(),
  existing: flag,
});

const potentialLoad = object({
  ...ranked,
  potential_prefill_tokens: count,
  potential_decode_blocks: count,
  active_requests: count,
});

export const potentialLoadsAnswer = z.array(potentialLoad);

export const loadsAnswer = z.array(
  object({ ...partition, loads: potentialLoadsAnswer, pending_count: count, pending_isl_tokens: count }),
);

export const overlapScoresAnswer = object({
  block_size: count,
  num_blocks: count,
  workers: z.array(
    object({
      ...ranked,
      device_blocks: count,
      host_pinned_blocks: count,
      disk_blocks: count,
      host_pinned_extension_blocks: count,
      disk_extension_blocks: count,
      shared_beyond_device_blocks: z.null(),
      router_credit_blocks: count,
    }),
  ),
  shared_cache: object({
    enabled: z.literal(false),
    total_hit_blocks: count,
    ranges: z.array(z.array(count)),
    error: z.null(),
  }),
});
