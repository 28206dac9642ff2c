import * as z from "zod";
import { WORKER_MODELS_MAX } from "../../gateway/options.js";
import { BLOCK_SIZE_MAX } from "../../selection/catalog/registration.js";
import { finite, flag, name, nameMap, namesUpTo, object, optional, selectionId, unsupported, whole } from "./fields.js";
import { figureFields, lifecycle, unusedFields } from "./workers.js";

const IN_FLIGHT_MAX = 2 ** 31 - 1;

const isDefault = (value: unknown) => value === "default";

/** What a router can have of a worker, in the words of the selection service. */
const workerFields = {
  model_name: unsupported("models says which a worker serves, and without it a worker serves any", isDefault),
  routing_group: unsupported("a router has one group", isDefault),
  data_parallel_start_rank: unsupported("a URL leads to one rank", (value) => value === 0),
  data_parallel_size: unsupported("a URL leads to one rank", (value) => value === 1),
  ...figureFields,
  ...unusedFields,
};

/** Adds a worker to a router, or replaces the one with its id. */
export const gatewayWorkerBody = object({
  worker_id: selectionId,
  endpoint: name,
  block_size: optional(whole(1, BLOCK_SIZE_MAX)),
  models: optional(namesUpTo(WORKER_MODELS_MAX)),
  max_in_flight: optional(whole(1, IN_FLIGHT_MAX)),
  ...workerFields,
});

const stays = "it stays as it was when the worker was added";

/** Changes what is given of a worker of a router. */
export const gatewayUpdateBody = object({
  ...workerFields,
  endpoint: unsupported(stays),
  block_size: unsupported(stays),
  models: unsupported(stays),
  max_in_flight: unsupported(stays),
  lifecycle,
});

/** A request to a router, of which is to be said where it would go. */
export const explainBody = object({
  path: z.custom<string>((value) => typeof value === "string" && value.startsWith("/v1/") && value.length <= 1_024, {
    error: "a path of at most 1024 characters that begins with /v1/",
  }),
  headers: optional(nameMap),
  /** JSON, or a text that is sent as it is. */
  body: z.unknown().optional(),
});

const text = z.string();
const count = whole(0);

export const explainAnswer = object({
  model: text,
  promptBytes: count,
  promptTokens: count,
  session: object({ id: text, source: text }).optional(),
  policy: text,
  worker: text.optional(),
  decision: z.enum(["initialize", "retain", "switch", "spill"]).optional(),
  blocks: count,
  hotBlocks: count,
  candidates: z.array(
    object({
      worker: text,
      isChosen: flag,
      cachedBlocks: count,
      cachedTokens: count,
      inFlight: count,
      terms: z.record(text, finite()),
    }),
  ),
  excluded: z.array(object({ worker: text, reason: text })),
});

export const gatewayReadyAnswer = object({ ready: flag });
