import type * as z from "zod";
import type { ReserveRequest } from "../../selection/service.js";
import { finite, flag, object, optional, rank, selectionId, whole, workerId } from "./fields.js";
import { checkPrompt, partitionFields, promptFields, promptLengthOf, promptOf } from "./prompt.js";
import { routerConfigOverride, sessionFields, sessionOf } from "./select.js";

const reservationShape = object({
  ...partitionFields,
  ...promptFields,
  ...sessionFields,
  selection_id: selectionId,
  worker_id: optional(workerId),
  dp_rank: optional(rank),
  router_config_override: optional(routerConfigOverride),
  expected_output_tokens: optional(whole(0)),
  effective_prefill_tokens: optional(whole(0)),
  track_prefill_tokens: optional(flag),
});

type ReservationBody = z.output<typeof reservationShape>;

/** Books what was selected, or, with a `worker_id`, what the body says. */
export const reservationBody = reservationShape.check((payload) => {
  const { value, issues } = payload;
  if (value.worker_id === undefined) return; // what was selected counts, and nothing of this
  checkPrompt(payload);
  const most = promptLengthOf(value);
  if (issues.length > 0 || (value.effective_prefill_tokens ?? 0) <= most) return;
  const message = `at most the ${most} tokens of the prompt`;
  issues.push({ code: "custom", input: value, path: ["effective_prefill_tokens"], message });
});

/** Puts a request to book into the words of the service. */
export function reserveRequestOf(body: ReservationBody): ReserveRequest {
  return {
    ...promptOf(body),
    ...sessionOf(body),
    selectionId: body.selection_id,
    workerId: body.worker_id,
    dpRank: body.dp_rank,
    expectedOutputTokens: body.expected_output_tokens,
    effectivePrefillTokens: body.effective_prefill_tokens,
    trackPrefillTokens: body.track_prefill_tokens ?? body.router_config_override?.track_prefill_tokens,
  };
}

export const outputBlockBody = object({
  decay_fraction: optional(finite("a number from 0 to 1", (value) => value >= 0 && value <= 1)),
});

export const cachedTokensBody = object({ cached_tokens: whole(0) });
