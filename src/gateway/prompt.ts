import { describe } from "../core/describe.js";
import { BodyError } from "../errors.js";
import { PROMPT_BLOCKS_MAX } from "../selection/service/prompt.js";
import { checkBody, type JsonObject, jsonOf, parseBody } from "./prompt/body.js";
import { CanonicalText, hashWholeText } from "./prompt/canonical-text.js";
import { writeChat } from "./prompt/chat.js";
import { writeCompletions, writePrompts } from "./prompt/completions.js";
import { writeMessages } from "./prompt/messages.js";
import { writeResponses } from "./prompt/responses.js";

export { BODY_COMPLEXITY_MAX, BODY_DEPTH_MAX } from "./prompt/body.js";

/** What a request is routed by. */
export interface PromptKey {
  /** Empty where the body names none. */
  readonly model: string;
  /** Of the full blocks of the prompt's canonical text. Prompts of other models, adapters and salts share none. */
  readonly sequenceHashes: BigUint64Array;
  /** The length of the canonical text, to estimate tokens by. */
  readonly promptBytes: number;
  /** Names what a conversation keeps: its tools, its system prompt and the first message of its user. 16 hex digits. */
  readonly fingerprint: string;
  readonly stream: boolean;
  /** As the body limits it. */
  readonly maxOutputTokens?: number;
}

/** The interfaces whose prompts are known. */
export type PromptPath =
  | "/v1/chat/completions"
  | "/v1/completions"
  | "/v1/responses"
  | "/v1/messages"
  | "/v1/embeddings";

export interface PromptKeyOptions {
  /** Bytes of canonical text in a block: 4 to 16,384. */
  readonly blockBytes: number;
  /** Keeps the fingerprints of one tenant from those of another. Hashes follow the body alone, as engines do. */
  readonly tenant: string;
  /** The body, if it was parsed before. */
  readonly parsed?: unknown;
}

/** Canonical text of one prompt: what stands behind is not hashed. Four million tokens, more than any engine takes. */
export const PROMPT_BYTES_MAX = 16_777_216;

/**
 * Parses a body and finds what its request is routed by. Only a body that cannot be routed is refused: of what the API
 * does not allow, the engine will say so.
 *
 * @throws {BodyError} `KVROUTE_BODY_NOT_JSON`, `KVROUTE_BODY_NOT_OBJECT`, `KVROUTE_BODY_TOO_COMPLEX`, `KVROUTE_BODY_FIELD`
 * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if `blockBytes` is out of range
 */
export function promptKeyOf(
  path: PromptPath,
  body: Uint8Array,
  options: PromptKeyOptions,
): PromptKey & { readonly parsed: unknown } {
  const { blockBytes, tenant } = options;
  const parsed = options.parsed === undefined ? parseBody(body) : checkBody(options.parsed);
  const model = modelOf(parsed);
  const maxBytes = Math.min(PROMPT_BYTES_MAX, blockBytes * PROMPT_BLOCKS_MAX);
  const text = new CanonicalText({ blockBytes, root: rootOf(path, model, parsed), maxBytes });
  WRITERS[path](text, parsed);
  const { sequence, opening } = text.finish();
  const maxOutputTokens = outputOf(parsed);
  return {
    model,
    sequenceHashes: sequence,
    promptBytes: text.length,
    fingerprint: hex(hashWholeText(tenant, opening)),
    stream: parsed["stream"] === true,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    parsed,
  };
}

/** Each writes the prompt of a body. */
const WRITERS: Readonly<Record<PromptPath, (text: CanonicalText, body: JsonObject) => void>> = {
  "/v1/chat/completions": writeChat,
  "/v1/completions": writeCompletions,
  "/v1/responses": writeResponses,
  "/v1/messages": writeMessages,
  "/v1/embeddings": (text, body) =>
    body["messages"] === undefined ? writePrompts(text, body["input"]) : writeChat(text, body),
};

/** Adapters, salts, and what changes how a prompt is made into tokens: its effect may stand anywhere. */
const ROOT_FIELDS = [
  ...["lora_path", "lora_name", "adapter_id", "cache_salt", "extra_key", "chat_template", "chat_template_kwargs"],
  ...["add_special_tokens", "truncate_prompt_tokens", "mm_processor_kwargs"],
];
/** What comes before the input from a store that only the engine sees. */
const STORED_FIELDS = ["previous_response_id", "conversation", "prompt"];

/**
 * Hashes what an engine's blocks depend on besides the text: the model and its adapter, the salt, what changes the chat
 * template, and what the engine has in store for the request.
 */
function rootOf(path: PromptPath, model: string, body: JsonObject): bigint {
  const isText = path === "/v1/completions" || path === "/v1/embeddings";
  const { reasoning, reasoning_effort: effort } = body;
  const dependsOn = [
    isText ? path : "conversation",
    model,
    fieldsOf(body, ROOT_FIELDS),
    effort ?? (reasoning as JsonObject | null | undefined)?.["effort"],
    path === "/v1/responses" ? fieldsOf(body, STORED_FIELDS) : {},
  ];
  return hashWholeText(jsonOf(dependsOn));
}

/** The fields of these names that are there, in this order. */
function fieldsOf(body: JsonObject, names: readonly string[]): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const name of names) {
    const value = body[name];
    if (value !== undefined && value !== null) fields[name] = value;
  }
  return fields;
}

function modelOf({ model }: JsonObject): string {
  if (model === undefined || model === null) return "";
  if (typeof model === "string") return model;
  throw new BodyError("KVROUTE_BODY_FIELD", `Expected model to be a string, got ${describe(model)}.`);
}

/** The first limit of an answer that is a number, by the names that the APIs have for it. */
function outputOf(body: JsonObject): number | undefined {
  const limits = [body["max_completion_tokens"], body["max_output_tokens"], body["max_tokens"]];
  return limits.find((limit): limit is number => Number.isSafeInteger(limit) && (limit as number) > 0);
}

function hex(hash: bigint): string {
  return hash.toString(16).padStart(16, "0");
}
