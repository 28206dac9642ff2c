import * as z from "zod";
import {
  BLOCK_SIZE_MAX,
  DATA_PARALLEL_SIZE_MAX,
  TAINTS_MAX,
  type WorkerUpdate,
} from "../../selection/catalog/registration.js";
import { finite, flag, name, nameMap, namesUpTo, object, optional, rank, whole, workerId } from "./fields.js";

/** What this service does without: it is checked, and not kept. */
export const unusedFields = {
  kv_events_endpoint: optional(name),
  kv_events_endpoints: optional(nameMap),
  replay_endpoint: optional(name),
  stable_routing_id: optional(name),
  topology_domains: optional(nameMap),
  kv_transfer_domain: optional(name),
  kv_transfer_enforcement: optional(z.enum(["required", "preferred"], { error: "one of required and preferred" })),
  kv_transfer_preferred_weight: optional(finite()),
  router_hint_worker_type: optional(name),
  router_hint_source_control_endpoints: optional(nameMap),
};

/** The figures of a worker, which a router changes as well. */
export const figureFields = {
  max_num_batched_tokens: optional(whole(1)),
  total_kv_blocks: optional(whole(1)),
  is_eagle: optional(flag.refine((isEagle) => !isEagle, { error: "false, as Eagle's windows are not hashed here" })),
  taints: optional(namesUpTo(TAINTS_MAX)),
  weight: optional(finite("a finite number above 0", (value) => value > 0)),
};

const updateFields = {
  model_name: optional(name),
  routing_group: optional(name),
  endpoint: optional(name),
  block_size: optional(whole(1, BLOCK_SIZE_MAX)),
  data_parallel_start_rank: optional(rank),
  data_parallel_size: optional(whole(1, DATA_PARALLEL_SIZE_MAX)),
  ...figureFields,
  ...unusedFields,
};

/** Adds a worker, or replaces the one with its id. */
export const workerBody = object({ worker_id: workerId, ...updateFields });

/** The part of a worker's life that a request can begin. */
export const lifecycle = optional(z.enum(["draining"], { error: "draining, or absent" }));

/** Changes what is given of a worker. */
export const workerUpdateBody = object({ ...updateFields, lifecycle });

/** Puts what is said of a worker into the words of the service. */
export function workerUpdateOf(body: Omit<z.output<typeof workerUpdateBody>, "lifecycle">): WorkerUpdate {
  return {
    modelName: body.model_name,
    routingGroup: body.routing_group,
    endpoint: body.endpoint,
    blockSize: body.block_size,
    dataParallelStartRank: body.data_parallel_start_rank,
    dataParallelSize: body.data_parallel_size,
    ...figuresOf(body),
  };
}

/** Puts the figures of a worker into the words of the service. */
export function figuresOf(body: z.output<z.ZodObject<typeof figureFields>>) {
  return {
    maxNumBatchedTokens: body.max_num_batched_tokens,
    totalKvBlocks: body.total_kv_blocks,
    taints: body.taints,
    weight: body.weight,
  };
}
