import * as z from "zod";
import { TAINTS_MAX } from "../../selection/catalog/registration.js";
import { ALLOWED_WORKERS_MAX } from "../../selection/service/eligible.js";
import type { RoutingConstraints, SelectRequest } from "../../selection/service.js";
import {
  finite,
  flag,
  name,
  namesUpTo,
  object,
  optional,
  rank,
  selectionId,
  taintWeights,
  unsupported,
  whole,
  workerId,
  workerIdsUpTo,
} from "./fields.js";
import { checkPrompt, partitionFields, promptFields, promptOf } from "./prompt.js";

const ofPolicy = "the policy of the service decides how workers are weighed, for all requests alike";

/** What one request asks to be done otherwise. */
export const routerConfigOverride = object({
  track_prefill_tokens: optional(flag),
  assume_kv_reuse: optional(
    flag.refine((reuses) => reuses, { error: "true, as what is booked always counts as held" }),
  ),
  overlap_score_credit: unsupported(ofPolicy),
  prefill_load_scale: unsupported(ofPolicy),
  router_temperature: unsupported(ofPolicy),
  shared_cache_multiplier: unsupported(ofPolicy),
  overlap_score_weight: unsupported(ofPolicy),
});

const sessionContext = object({
  session_id: name,
  parent_session_id: optional(name),
  session_final: optional(flag),
  input_trigger: optional(
    z.enum(["user_message", "tool_result", "other"], { error: "one of user_message, tool_result and other" }),
  ),
});

/** The fields of a session, those beyond Dynamo's included. */
export const sessionFields = {
  session_id: optional(name),
  session_context: optional(sessionContext),
  tenant: optional(name),
};

const selectFields = {
  ...partitionFields,
  ...promptFields,
  ...sessionFields,
  selection_id: optional(selectionId),
  router_config_override: optional(routerConfigOverride),
  expected_output_tokens: optional(whole(0)),
  priority_jump: optional(finite()),
  strict_priority: optional(whole(0)),
  affinity_target: unsupported("a request is bound to a worker by pinned_worker or session_id"),
  pinned_worker: optional(object({ worker_id: workerId, dp_rank: optional(rank) })),
  allowed_worker_ids: optional(workerIdsUpTo(ALLOWED_WORKERS_MAX)),
  routing_constraints: optional(
    object({
      required_taints: optional(namesUpTo(TAINTS_MAX)),
      preferred_taints: optional(taintWeights),
    }),
  ),
  affinity_key: optional(name),
  explain: optional(flag),
};

export const selectBody = object({ ...selectFields, advisory: optional(flag) }).check(checkPrompt);

export const selectAndReserveBody = object({
  ...selectFields,
  advisory: optional(flag.refine((advisory) => !advisory, { error: "false, as what is only advice is not booked" })),
}).check(checkPrompt);

type SelectBody = z.output<typeof selectBody>;

/** Puts a request to select into the words of the service. */
export function selectRequestOf(body: SelectBody): SelectRequest {
  return {
    ...promptOf(body),
    ...constraintsOf(body),
    ...sessionOf(body),
    selectionId: body.selection_id,
    expectedOutputTokens: body.expected_output_tokens,
    trackPrefillTokens: body.router_config_override?.track_prefill_tokens,
    affinityKey: body.affinity_key,
    explain: body.explain,
  };
}

function constraintsOf({
  pinned_worker: pin,
  allowed_worker_ids,
  routing_constraints,
}: SelectBody): RoutingConstraints {
  return {
    pinnedWorker: pin === undefined ? undefined : { workerId: pin.worker_id, dpRank: pin.dp_rank },
    allowedWorkerIds: allowed_worker_ids,
    requiredTaints: routing_constraints?.required_taints,
    preferredTaints: routing_constraints?.preferred_taints,
  };
}

/** Names the session of a request and its tenant. */
export function sessionOf(
  body: Pick<SelectBody, keyof typeof sessionFields>,
): Pick<SelectRequest, "session" | "tenant"> {
  return { session: body.session_context?.session_id ?? body.session_id, tenant: body.tenant };
}
