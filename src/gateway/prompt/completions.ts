import { type JsonObject, listOf } from "./body.js";
import { type CanonicalText, Mark, TOKEN_MAX } from "./canonical-text.js";

/** Writes prompts without messages: a text, or tokens, or a list of either, one behind the other. */
export function writePrompts(to: CanonicalText, prompts: unknown): void {
  for (const prompt of isTokens(prompts) ? [prompts] : listOf(prompts)) {
    if (to.isFull) break;
    writePrompt(to, prompt);
    to.endOpening();
  }
}

/** Writes a body of completions. */
export function writeCompletions(to: CanonicalText, body: JsonObject): void {
  const { prompt, prompt_embeds: embeds, suffix } = body;
  if (typeof embeds === "string") to.media(embeds);
  writePrompts(to, prompt);
  if (suffix !== undefined && suffix !== null && suffix !== "") to.field(Mark.suffix, suffix);
}

function writePrompt(to: CanonicalText, prompt: unknown): void {
  if (isTokens(prompt)) {
    to.tokens(prompt);
  } else {
    to.field(Mark.prompt, prompt);
  }
}

function isTokens(value: unknown): value is readonly number[] {
  if (!Array.isArray(value) || value.length === 0) return false;
  for (const token of value) {
    if (typeof token !== "number" || !(token >= 0 && token <= TOKEN_MAX) || Math.trunc(token) !== token) return false;
  }
  return true;
}
