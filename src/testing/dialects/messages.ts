import { type Dialect, named, type Reply, type StreamEvent, type Wish } from "../dialect.js";
import { type Body, isBody, readCount, readObjects } from "../fields.js";
import type { Generation } from "../generation.js";
import { badRequest } from "../http-error.js";
import { encodeMessage, join, openMessage } from "../tokenizer.js";
import { textsOf } from "./chat.js";

/** Messages of Anthropic. */
export const messages: Dialect = {
  idPrefix: "msg_",
  read,
  whole(reply, texts) {
    const text = texts[0] as string;
    const { toolCall, id } = reply;
    const call = { type: "tool_use", id: `toolu_${id}`, name: toolCall?.name, input: inputOf(text) };
    return envelope(reply, [toolCall === undefined ? { type: "text", text } : call], stopReason(reply));
  },
  events,
};

function read(body: Body): Wish {
  const turns = readObjects(body, "messages");
  if (turns.length === 0) throw badRequest("Expected messages to hold at least one message, got none.");
  const maxTokens = readCount(body, "max_tokens", 1);
  if (maxTokens === undefined) throw badRequest("Expected max_tokens to be a number of tokens, got none.");
  const tools = body["tools"] === undefined ? [] : [encodeMessage("tools", [JSON.stringify(body["tools"])])];
  const system = textsOf(body["system"]);
  const parts = [
    ...tools,
    ...(system.length === 0 ? [] : [encodeMessage("system", system)]),
    ...turns.map(({ role, content }) => encodeMessage(`${role}`, textsOf(content))),
    openMessage("assistant"),
  ];
  return { prompts: [join(parts)], maxTokens, forcedTool: forcedTool(body) };
}

function forcedTool({ tools, tool_choice }: Body): string | undefined {
  if (!isBody(tool_choice)) return undefined;
  if (tool_choice["type"] === "tool") return `${tool_choice["name"]}`;
  return tool_choice["type"] === "any" && Array.isArray(tools) ? `${tools[0]?.name}` : undefined;
}

/** Reads the arguments of a call; those that were cut off are none. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function stopReason({ generations, toolCall }: Reply): string {
  if ((generations[0] as Generation).isCutOff) return "max_tokens";
  return toolCall === undefined ? "end_turn" : "tool_use";
}

function usageOf({ generations }: Reply): object {
  const { promptTokens, cachedTokens, outputTokens } = (generations[0] as Generation).usage;
  const input_tokens = promptTokens - cachedTokens; // Anthropic counts only what was computed
  return {
    input_tokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
  };
}

function envelope(reply: Reply, content: readonly object[], stop_reason: string | null): object {
  const { id, model } = reply;
  const rest = { stop_reason, stop_sequence: null, usage: usageOf(reply) };
  return { id, type: "message", role: "assistant", model, content, ...rest };
}

async function* events(reply: Reply): AsyncGenerator<StreamEvent, void, undefined> {
  const { toolCall, id } = reply;
  const pieces = (reply.generations[0] as Generation).pieces();
  const first = await pieces.next(); // what was cached is known by then
  yield named({ type: "message_start", message: envelope(reply, [], null) });
  const call = { type: "tool_use", id: `toolu_${id}`, name: toolCall?.name, input: {} };
  const content_block = toolCall === undefined ? { type: "text", text: "" } : call;
  yield named({ type: "content_block_start", index: 0, content_block });
  yield named({ type: "ping" });
  for (let piece = first; piece.done !== true; piece = await pieces.next()) {
    const { value } = piece;
    const json = { type: "input_json_delta", partial_json: value };
    const delta = toolCall === undefined ? { type: "text_delta", text: value } : json;
    yield named({ type: "content_block_delta", index: 0, delta });
  }
  yield named({ type: "content_block_stop", index: 0 });
  const delta = { stop_reason: stopReason(reply), stop_sequence: null };
  yield named({ type: "message_delta", delta, usage: usageOf(reply) });
  yield named({ type: "message_stop" });
}
