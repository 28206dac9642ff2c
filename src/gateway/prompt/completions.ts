import type { JsonObject } from "./body.js";
import { jsonOf } from "./body.js";
import { type CanonicalText, Mark, TOKEN_MAX } from "./canonical-text.js";

/**
 * Writes prompts without messages: a text, or tokens, or a list of either, one behind the other. Returns the bytes of the
 * first.
 */
export function writePrompts(to: CanonicalText, prompts: unknown): number {
  const list = Array.isArray(prompts) && !isTokens(prompts) ? prompts : [prompts];
  let firstBytes: number | undefined;
  for (const prompt of list) {
    if (to.isFull) break;
    writePrompt(to, prompt);
    firstBytes ??= to.length;
  }
  return firstBytes ?? to.length;
}

/** Writes a body of completions. Returns the bytes of the first prompt. */
export function writeCompletions(to: CanonicalText, body: JsonObject): number {
  const { prompt, prompt_embeds: embeds, suffix } = body;
  if (typeof embeds === "string") to.media(embeds);
  const firstBytes = writePrompts(to, prompt);
  if (typeof suffix === "string" && suffix !== "") {
    to.mark(Mark.suffix);
    to.text(suffix);
  }
  return firstBytes;
}

function writePrompt(to: CanonicalText, prompt: unknown): void {
  if (isTokens(prompt)) {
    to.tokens(prompt);
  } else if (prompt !== undefined && prompt !== null) {
    to.mark(typeof prompt === "string" ? Mark.prompt : Mark.value);
    to.text(typeof prompt === "string" ? prompt : jsonOf(prompt));
  }
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every(isToken);
}

function isToken(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= TOKEN_MAX;
}
