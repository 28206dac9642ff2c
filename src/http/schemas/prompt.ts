import type * as z from "zod";
import { PROMPT_BLOCKS_MAX } from "../../selection/service/prompt.js";
import type { PromptRequest } from "../../selection/service.js";
import { flag, hashes, name, object, optional, tokenIds, unsupported, whole } from "./fields.js";

const isListOfNulls = (value: unknown) => Array.isArray(value) && value.every((item) => item === null);

const mmInfos = unsupported("tokens of images are not hashed here; send sequence_hashes", isListOfNulls);

/** The fields of a partition. */
export const partitionFields = { model_name: name.default("default"), routing_group: name.default("default") };

/** The fields of a prompt. */
export const promptFields = {
  token_ids: optional(tokenIds),
  mm_routing_info: optional(object({ routing_token_ids: optional(tokenIds), block_mm_infos: mmInfos })),
  block_mm_infos: mmInfos,
  block_hashes: optional(hashes(PROMPT_BLOCKS_MAX)),
  sequence_hashes: optional(hashes(PROMPT_BLOCKS_MAX)),
  isl_tokens: optional(whole(1)),
  lora_name: optional(name),
  cache_salt: optional(name),
  is_eagle: optional(flag.refine((isEagle) => !isEagle, { error: "false, as Eagle's windows are not hashed here" })),
};

const promptShape = object(promptFields);
type PromptBody = z.output<typeof promptShape>;

/** Notes what is wrong with a prompt as a whole. */
export function checkPrompt({ value, issues }: z.core.ParsePayload<PromptBody>): void {
  const { block_hashes: blocks, sequence_hashes: sequence, isl_tokens: islTokens } = value;
  const note = (field: keyof PromptBody, message: string) =>
    issues.push({ code: "custom", input: value, path: [field], message });
  if (blocks !== undefined && sequence !== undefined && blocks.length !== sequence.length) {
    note("sequence_hashes", `a list of ${blocks.length}, as block_hashes is`);
  }
  if (hasTokens(value)) return;
  if (sequence === undefined) note("token_ids", "given, or else sequence_hashes and isl_tokens");
  else if (islTokens === undefined) note("isl_tokens", "given beside sequence_hashes");
}

// A list of no tokens says less than hashes do.
function tokensOf({ token_ids: tokens, mm_routing_info: info, sequence_hashes: hashed }: PromptBody) {
  const routing = info?.routing_token_ids;
  if (routing !== undefined && routing.length > 0) return routing;
  return tokens?.length === 0 && hashed !== undefined ? undefined : tokens;
}

const hasTokens = (body: PromptBody) => tokensOf(body) !== undefined;

/** Counts the tokens of a prompt that was checked. */
export function promptLengthOf(body: PromptBody): number {
  return tokensOf(body)?.length ?? body.isl_tokens ?? 0;
}

/** Puts a prompt and its partition into the words of the service. */
export function promptOf(body: PromptBody & { model_name: string; routing_group: string }): PromptRequest {
  return {
    modelName: body.model_name,
    routingGroup: body.routing_group,
    tokenIds: tokensOf(body),
    sequenceHashes: body.sequence_hashes,
    islTokens: body.isl_tokens,
    loraName: body.lora_name,
    cacheSalt: body.cache_salt,
  };
}

/** Asks what workers hold of a prompt, or would have to do for it. */
export const promptBody = object({ ...partitionFields, ...promptFields }).check(checkPrompt);
