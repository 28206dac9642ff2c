import { type Dialect, type Reply, type StreamEvent, usageOf, wantsUsage } from "../dialect.js";
import { readCount, readInputs } from "../fields.js";
import type { Generation } from "../generation.js";
import { encodeText } from "../tokenizer.js";

/** Tokens of an answer where a request does not say how many, as OpenAI has it. */
const MAX_TOKENS_DEFAULT = 16;

/** Completions of OpenAI: prompts without a template. */
export const completions: Dialect = {
  idPrefix: "cmpl-",
  read: (body) => ({
    prompts: readInputs(body, "prompt", encodeText),
    maxTokens: readCount(body, "max_tokens", 1) ?? MAX_TOKENS_DEFAULT,
  }),
  whole(reply, texts) {
    const choices = reply.generations.map((one, index) => choice(index, texts[index] as string, finishReason(one)));
    return { ...head(reply), choices, usage: usageOf(reply) };
  },
  events,
};

function head({ id, created, model }: Reply): object {
  return { id, object: "text_completion", created, model };
}

function choice(index: number, text: string, finish_reason: string | null): object {
  return { index, text, logprobs: null, finish_reason };
}

function finishReason(generation: Generation): string {
  return generation.isCutOff ? "length" : "stop";
}

async function* events(reply: Reply): AsyncGenerator<StreamEvent, void, undefined> {
  const chunk = (some: object): StreamEvent => ({ data: JSON.stringify({ ...head(reply), choices: [some] }) });
  // One prompt after the other: the engine works on all of them meanwhile.
  for (const [index, generation] of reply.generations.entries()) {
    for await (const piece of generation.pieces()) yield chunk(choice(index, piece, null));
    yield chunk(choice(index, "", finishReason(generation)));
  }
  if (wantsUsage(reply.body)) {
    yield { data: JSON.stringify({ ...head(reply), choices: [], usage: usageOf(reply) }) };
  }
  yield { data: "[DONE]" };
}
