import { type Dialect, named, type Reply, type StreamEvent, type Wish } from "../dialect.js";
import { type Body, isBody, readCount, readText } from "../fields.js";
import type { Generation } from "../generation.js";
import { badRequest, HttpError } from "../http-error.js";
import { encodeMessage, join, openMessage } from "../tokenizer.js";
import { textsOf } from "./chat.js";

/** Responses of OpenAI. They are kept for `previous_response_id`, unless a request says `store: false`. */
export class Responses implements Dialect {
  readonly idPrefix = "resp_";
  readonly #storedMax: number;
  /** What was said up to the end of a response, by its id. */
  readonly #stored = new Map<string, Uint32Array>();
  /** What was said up to a request under way. */
  readonly #said = new WeakMap<Body, Uint32Array>();

  /** @param storedMax responses that are kept; the oldest is forgotten first */
  constructor(storedMax: number) {
    this.#storedMax = storedMax;
  }

  read(body: Body): Wish {
    const said = join([this.#before(body), ...instructionsOf(body), ...inputsOf(body)]);
    this.#said.set(body, said);
    const maxTokens = readCount(body, "max_output_tokens", 1);
    return { prompts: [join([said, openMessage("assistant")])], maxTokens, forcedTool: forcedTool(body) };
  }

  whole(reply: Reply, texts: readonly string[]): object {
    return this.#close(reply, texts[0] as string);
  }

  async *events(reply: Reply): AsyncGenerator<StreamEvent, void, undefined> {
    let sequence_number = 0;
    const event = (type: string, rest: object) => named({ type, ...rest, sequence_number: sequence_number++ });
    const { toolCall } = reply;
    const place = { item_id: itemId(reply), output_index: 0 };
    const part = { ...place, content_index: 0 };
    yield event("response.created", { response: envelope(reply, "in_progress", [], null) });
    yield event("response.in_progress", { response: envelope(reply, "in_progress", [], null) });
    const opened = itemOf(reply, "in_progress", "");
    yield event("response.output_item.added", {
      output_index: 0,
      item: { ...opened, ...(toolCall ? {} : { content: [] }) },
    });
    if (toolCall === undefined) yield event("response.content_part.added", { ...part, part: partOf("") });
    let text = "";
    for await (const delta of (reply.generations[0] as Generation).pieces()) {
      text += delta;
      if (toolCall === undefined) yield event("response.output_text.delta", { ...part, delta, logprobs: [] });
      else yield event("response.function_call_arguments.delta", { ...place, delta });
    }
    if (toolCall === undefined) {
      yield event("response.output_text.done", { ...part, text, logprobs: [] });
      yield event("response.content_part.done", { ...part, part: partOf(text) });
    } else {
      yield event("response.function_call_arguments.done", { ...place, name: toolCall.name, arguments: text });
    }
    const response = this.#close(reply, text);
    yield event("response.output_item.done", { output_index: 0, item: itemOf(reply, statusOf(reply), text) });
    yield event(`response.${statusOf(reply)}`, { response });
  }

  #before(body: Body): Uint32Array {
    const id = readText(body, "previous_response_id");
    if (id === undefined) return new Uint32Array(0);
    const said = this.#stored.get(id);
    if (said !== undefined) return said;
    throw new HttpError(404, "NotFoundError", `Expected previous_response_id to name a kept response, got ${id}.`);
  }

  #close(reply: Reply, text: string): object {
    const { body, id } = reply;
    if (body["store"] !== false) {
      const before = this.#said.get(body) ?? new Uint32Array(0);
      this.#stored.set(id, join([before, encodeMessage("assistant", [text])]));
      const oldest = this.#stored.keys().next().value;
      if (this.#stored.size > this.#storedMax && oldest !== undefined) this.#stored.delete(oldest);
    }
    const status = statusOf(reply);
    return envelope(reply, status, [itemOf(reply, status, text)], usageOf(reply));
  }
}

function instructionsOf(body: Body): Uint32Array[] {
  const tools = Array.isArray(body["tools"]) && body["tools"].length > 0 ? body["tools"] : undefined;
  const instructions = readText(body, "instructions");
  return [
    ...(tools === undefined ? [] : [encodeMessage("tools", [JSON.stringify(tools)])]),
    ...(instructions === undefined ? [] : [encodeMessage("system", [instructions])]),
  ];
}

function inputsOf({ input }: Body): Uint32Array[] {
  if (typeof input === "string") return [encodeMessage("user", [input])];
  if (!Array.isArray(input) || !input.every(isBody)) {
    throw badRequest("Expected input to be a string or a list of items.");
  }
  return input.map((item) => {
    if (typeof item["role"] === "string") return encodeMessage(item["role"], textsOf(item["content"]));
    if (item["type"] === "function_call") return encodeMessage("assistant", [`${item["arguments"]}`]);
    return encodeMessage(`${item["type"]}`, [JSON.stringify(item["output"] ?? item)]);
  });
}

function forcedTool({ tools, tool_choice }: Body): string | undefined {
  if (isBody(tool_choice)) return typeof tool_choice["name"] === "string" ? tool_choice["name"] : undefined;
  return tool_choice === "required" && Array.isArray(tools) ? `${tools[0]?.name}` : undefined;
}

function statusOf({ generations }: Reply): "completed" | "incomplete" {
  return (generations[0] as Generation).isCutOff ? "incomplete" : "completed";
}

function itemId({ id, toolCall }: Reply): string {
  return `${toolCall === undefined ? "msg" : "fc"}_${id}`;
}

function partOf(text: string): object {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function itemOf(reply: Reply, status: string, text: string): object {
  const { toolCall, id } = reply;
  const head = { id: itemId(reply), status };
  if (toolCall === undefined) return { ...head, type: "message", role: "assistant", content: [partOf(text)] };
  return { ...head, type: "function_call", call_id: `call_${id}`, name: toolCall.name, arguments: text };
}

function usageOf({ generations }: Reply): object {
  const { promptTokens, cachedTokens, outputTokens } = (generations[0] as Generation).usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + outputTokens,
  };
}

function envelope(reply: Reply, status: string, output: readonly object[], usage: object | null): object {
  const { id, created, model, body } = reply;
  return {
    id,
    object: "response",
    created_at: created,
    status,
    error: null,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: body["instructions"] ?? null,
    metadata: body["metadata"] ?? {},
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: body["previous_response_id"] ?? null,
    temperature: body["temperature"] ?? null,
    tool_choice: body["tool_choice"] ?? "auto",
    tools: body["tools"] ?? [],
    top_p: body["top_p"] ?? null,
    usage,
  };
}
