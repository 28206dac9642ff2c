import { type PromptPath, promptKeyOf } from "../../src/gateway/prompt.js";

export const bytesOf = (text: string) => new TextEncoder().encode(text);

/** The key of a body, in small blocks, so that short prompts have some. */
export const keyOf = (path: PromptPath, body: unknown, { blockBytes = 16, tenant = "" } = {}) =>
  promptKeyOf(path, bytesOf(JSON.stringify(body)), { blockBytes, tenant });

export const chatKey = (messages: unknown, fields: object = {}, blockBytes = 16) =>
  keyOf("/v1/chat/completions", { model: "m", messages, ...fields }, { blockBytes });

/** Counts the blocks that two keys share from the root. */
export function shared(a: { sequenceHashes: BigUint64Array }, b: { sequenceHashes: BigUint64Array }): number {
  const [left, right] = [a.sequenceHashes, b.sequenceHashes];
  let count = 0;
  while (count < Math.min(left.length, right.length) && left[count] === right[count]) count++;
  return count;
}

/** A conversation in no API's terms. */
export interface Turn {
  readonly user: string;
  readonly assistant: string;
  readonly calls: readonly { readonly name: string; readonly args: unknown; readonly result: string }[];
}

export interface Talk {
  readonly system: string;
  readonly tools: readonly { readonly name: string; readonly description: string; readonly schema: object }[];
  readonly turns: readonly Turn[];
}

const callId = (turn: number, call: number) => `call_${turn}_${call}`;

export function asChat({ system, tools, turns }: Talk) {
  return {
    model: "m",
    tools: tools.map(({ name, description, schema }) => ({
      type: "function",
      function: { name, description, parameters: schema },
    })),
    messages: [
      { role: "system", content: system },
      ...turns.flatMap(({ user, assistant, calls }, turn) => [
        { role: "user", content: user },
        {
          role: "assistant",
          content: assistant,
          tool_calls: calls.map(({ name, args }, call) => ({
            type: "function",
            id: callId(turn, call),
            function: { name, arguments: JSON.stringify(args, null, 1) },
          })),
        },
        ...calls.map(({ result }, call) => ({ role: "tool", tool_call_id: callId(turn, call), content: result })),
      ]),
    ],
  };
}

export function asResponses({ system, tools, turns }: Talk) {
  return {
    model: "m",
    instructions: system,
    tools: tools.map(({ name, description, schema }) => ({ type: "function", name, description, parameters: schema })),
    input: turns.flatMap(({ user, assistant, calls }, turn) => [
      { role: "user", content: [{ type: "input_text", text: user }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: assistant, annotations: [] }] },
      ...calls.map(({ name, args }, call) => ({
        type: "function_call",
        call_id: callId(turn, call),
        name,
        arguments: JSON.stringify(args),
      })),
      ...calls.map(({ result }, call) => ({
        type: "function_call_output",
        call_id: callId(turn, call),
        output: result,
      })),
    ]),
  };
}

export function asMessages({ system, tools, turns }: Talk) {
  return {
    model: "m",
    max_tokens: 100,
    system: [{ type: "text", text: system, cache_control: { type: "ephemeral" } }],
    tools: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    messages: turns.flatMap(({ user, assistant, calls }, turn) => [
      { role: "user", content: [{ type: "text", text: user }] },
      {
        role: "assistant",
        content: [
          ...(assistant === "" ? [] : [{ type: "text", text: assistant }]),
          ...calls.map(({ name, args }, call) => ({ type: "tool_use", id: callId(turn, call), name, input: args })),
        ],
      },
      ...(calls.length === 0
        ? []
        : [
            {
              role: "user",
              content: calls.map(({ result }, call) => ({
                type: "tool_result",
                tool_use_id: callId(turn, call),
                content: [{ type: "text", text: result }],
              })),
            },
          ]),
    ]),
  };
}
