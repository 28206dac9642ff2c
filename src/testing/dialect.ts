import type { Body } from "./fields.js";
import type { Generation } from "./generation.js";

/** A function that an answer calls. */
export interface ToolCall {
  readonly name: string;
  /** JSON. */
  readonly arguments: string;
}

/** What a request wants, whatever protocol it came in. */
export interface Wish {
  readonly prompts: readonly Uint32Array[];
  readonly maxTokens: number | undefined;
  /** A function that the answer must call. */
  readonly forcedTool?: string | undefined;
}

/** What the answer to a request is made of. */
export interface Reply {
  readonly id: string;
  /** Seconds of the engine's clock. */
  readonly created: number;
  readonly model: string;
  readonly body: Body;
  /** One for each prompt. */
  readonly generations: readonly Generation[];
  readonly toolCall: ToolCall | undefined;
}

/** An event of a stream: its name, where the protocol names them, and its data. */
export interface StreamEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/** One protocol: how its requests are read, and how its answers look. */
export interface Dialect {
  readonly idPrefix: string;
  read(body: Body): Wish;
  /** Gives the whole answer once the generations have ended. */
  whole(reply: Reply, texts: readonly string[]): object;
  /** Gives the answer as it comes. */
  events?(reply: Reply): AsyncGenerator<StreamEvent, void, undefined>;
}

/** An event whose name stands in its data as well. */
export function named(data: { readonly type: string; readonly [field: string]: unknown }): StreamEvent {
  return { event: data.type, data: JSON.stringify(data) };
}

/** The usage of OpenAI's older protocols, summed over all prompts. */
export function usageOf({ generations }: Reply): object {
  const sum = (count: (generation: Generation) => number) => generations.reduce((total, one) => total + count(one), 0);
  const prompt_tokens = sum(({ usage }) => usage.promptTokens);
  const completion_tokens = sum(({ usage }) => usage.outputTokens);
  const cached_tokens = sum(({ usage }) => usage.cachedTokens);
  const total_tokens = prompt_tokens + completion_tokens;
  return { prompt_tokens, total_tokens, completion_tokens, prompt_tokens_details: { cached_tokens } };
}

/** Whether the client wants the usage at the end of a stream. */
export function wantsUsage(body: Body): boolean {
  const options = body["stream_options"] as Body | null | undefined;
  return options?.["include_usage"] === true;
}
