import { type Dialect, type Reply, type StreamEvent, usageOf, type Wish, wantsUsage } from "../dialect.js";
import { type Body, isBody, readCount, readObjects } from "../fields.js";
import type { Generation } from "../generation.js";
import { badRequest } from "../http-error.js";
import { encodeMessage, join, openMessage } from "../tokenizer.js";

/** Chat completions of OpenAI. */
export const chat: Dialect = {
  idPrefix: "chatcmpl-",
  read,
  whole(reply, texts) {
    const generation = reply.generations[0] as Generation;
    const message = { role: "assistant", refusal: null, ...contentOf(reply, texts[0] as string) };
    const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(reply, generation) };
    return { ...head(reply, "chat.completion"), choices: [choice], usage: usageOf(reply) };
  },
  events,
};

function read(body: Body): Wish {
  const messages = readObjects(body, "messages");
  if (messages.length === 0) throw badRequest("Expected messages to hold at least one message, got none.");
  if ((readCount(body, "n", 1) ?? 1) !== 1) throw badRequest("Expected n to be 1: the engine gives one answer.");
  const tools = body["tools"] === undefined ? [] : [encodeMessage("tools", [JSON.stringify(body["tools"])])];
  return {
    prompts: [join([...tools, ...messages.map(tokensOf), openMessage("assistant")])],
    maxTokens: readCount(body, "max_completion_tokens", 1) ?? readCount(body, "max_tokens", 1),
    forcedTool: forcedTool(body),
  };
}

function tokensOf(message: Body): Uint32Array {
  const { role, content, tool_calls } = message;
  if (typeof role !== "string") throw badRequest("Expected every message to have a role.");
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isBody).flatMap(textsOfCall) : [];
  return encodeMessage(role, [...textsOf(content), ...calls]);
}

/** Lists the texts of a message's content; what is no text stands there as JSON. */
export function textsOf(content: unknown): string[] {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return [content];
  if (!Array.isArray(content)) throw badRequest("Expected content to be a string or a list of parts.");
  return content.map((part) => (typeof part?.text === "string" ? part.text : JSON.stringify(part)));
}

function textsOfCall({ function: called }: Body): string[] {
  if (!isBody(called)) return [];
  return [`${called["name"]}`, `${called["arguments"]}`];
}

/** The function that an answer must call, where `tool_choice` says so. */
function forcedTool({ tools, tool_choice }: Body): string | undefined {
  if (isBody(tool_choice)) return nameOf(tool_choice);
  if (tool_choice !== "required" || !Array.isArray(tools)) return undefined;
  return nameOf(tools[0]);
}

function nameOf(tool: unknown): string | undefined {
  const called = isBody(tool) ? (isBody(tool["function"]) ? tool["function"] : tool) : undefined;
  return typeof called?.["name"] === "string" ? called["name"] : undefined;
}

function head({ id, created, model }: Reply, object: string): object {
  return { id, object, created, model };
}

function finishReason({ toolCall }: Reply, generation: Generation): string {
  if (generation.isCutOff) return "length";
  return toolCall === undefined ? "stop" : "tool_calls";
}

function contentOf({ id, toolCall }: Reply, text: string): object {
  if (toolCall === undefined) return { content: text };
  const call = { id: `call-${id}`, type: "function", function: { name: toolCall.name, arguments: text } };
  return { content: null, tool_calls: [call] };
}

async function* events(reply: Reply): AsyncGenerator<StreamEvent, void, undefined> {
  const generation = reply.generations[0] as Generation;
  const { id, toolCall } = reply;
  const chunk = (delta: object, finish_reason: string | null): StreamEvent => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
    return { data: JSON.stringify({ ...head(reply, "chat.completion.chunk"), choices }) };
  };
  const pieces = generation.pieces();
  const first = await pieces.next(); // vLLM says that it begins when it has the first token
  yield chunk({ role: "assistant", content: toolCall === undefined ? "" : null }, null);
  if (toolCall !== undefined) {
    const called = { name: toolCall.name, arguments: "" };
    yield chunk({ tool_calls: [{ index: 0, id: `call-${id}`, type: "function", function: called }] }, null);
  }
  for (let piece = first; piece.done !== true; piece = await pieces.next()) {
    const { value } = piece;
    const call = { tool_calls: [{ index: 0, function: { arguments: value } }] };
    yield chunk(toolCall === undefined ? { content: value } : call, null);
  }
  yield chunk({}, finishReason(reply, generation));
  if (wantsUsage(reply.body)) {
    const last = { ...head(reply, "chat.completion.chunk"), choices: [], usage: usageOf(reply) };
    yield { data: JSON.stringify(last) };
  }
  yield { data: "[DONE]" };
}
