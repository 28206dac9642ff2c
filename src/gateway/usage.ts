import type { Dialect } from "./dialect.js";
import { isObject, type JsonObject } from "./prompt/body.js";

/** What an engine says that a request took, in tokens. What it does not say is absent. */
export interface Usage {
  readonly promptTokens?: number | undefined;
  /** Tokens of the prompt that it found in its cache. */
  readonly cachedTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** Reads the `usage` of an answer, `undefined` where there is none. Whatever is no count is absent. */
export function usageOf(usage: unknown, dialect: Dialect): Usage | undefined {
  if (!isObject(usage)) return undefined;
  return dialect === "messages" ? anthropicUsage(usage) : openAiUsage(usage);
}

/** Lays what was said later over what was said before. */
export function mergeUsage(before: Usage | undefined, after: Usage): Usage {
  return {
    promptTokens: after.promptTokens ?? before?.promptTokens,
    cachedTokens: after.cachedTokens ?? before?.cachedTokens,
    outputTokens: after.outputTokens ?? before?.outputTokens,
  };
}

function openAiUsage(usage: JsonObject): Usage {
  const details = usage["prompt_tokens_details"] ?? usage["input_tokens_details"];
  return {
    promptTokens: countOf(usage["prompt_tokens"] ?? usage["input_tokens"]),
    cachedTokens: isObject(details) ? countOf(details["cached_tokens"]) : undefined,
    outputTokens: countOf(usage["completion_tokens"] ?? usage["output_tokens"]),
  };
}

// Here the tokens of the prompt are in three parts: read from the cache, written to it, and neither.
function anthropicUsage(usage: JsonObject): Usage {
  const fresh = countOf(usage["input_tokens"]);
  const cachedTokens = countOf(usage["cache_read_input_tokens"]);
  const written = countOf(usage["cache_creation_input_tokens"]);
  return {
    promptTokens: fresh === undefined ? undefined : fresh + (cachedTokens ?? 0) + (written ?? 0),
    cachedTokens,
    outputTokens: countOf(usage["output_tokens"]),
  };
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
