import type { Plan } from "./traffic.js";

/** What a client got. */
export interface Got {
  readonly status: number;
  /** All of the body that came. */
  readonly text: string;
  /** Whether the transport says that this is all. */
  readonly isComplete: boolean;
}

/** What a client made of it. */
export type Reading =
  | { readonly kind: "whole"; readonly text: string }
  /** A status with an error in the envelope of the protocol. */
  | { readonly kind: "error"; readonly status: number; readonly code: string }
  /** A stream whose last word is an error. */
  | { readonly kind: "error event"; readonly text: string }
  /** An answer that is no stream, and whose connection broke: a client that reads it fails. */
  | { readonly kind: "broken" }
  /** What no client should get. */
  | { readonly kind: "unclear"; readonly why: string };

type Json = Record<string, unknown>;

/** Reads an answer as a client of its protocol does. */
export function readingOf({ path, isStream }: Plan, got: Got): Reading {
  try {
    if (got.status !== 200) return readError(got);
    if (isStream) return readStream(path, got);
    if (!got.isComplete) return { kind: "broken" };
    return { kind: "whole", text: textOf(path, JSON.parse(got.text)) };
  } catch (error) {
    return { kind: "unclear", why: `${got.status}: ${error} in ${got.text.slice(-200)}` };
  }
}

function readError({ status, text, isComplete }: Got): Reading {
  const { error } = JSON.parse(text) as { error: { message: unknown; code?: unknown; type: unknown } };
  if (!isComplete || status < 400 || typeof error.message !== "string" || typeof error.type !== "string") {
    return { kind: "unclear", why: `${status}: ${text}` };
  }
  return { kind: "error", status, code: `${error.code ?? error.type}` };
}

function readStream(path: string, { text, isComplete }: Got): Reading {
  const events = text.split("\n\n");
  if (events.pop() !== "" || !isComplete) return { kind: "unclear", why: `cut off: ${text.slice(-200)}` };
  const data = events.map((event) => /^data: (.*)$/m.exec(event)?.[1] ?? "");
  const isOpenAi = path === "/v1/chat/completions" || path === "/v1/completions";
  if (isOpenAi && data.pop() !== "[DONE]") return { kind: "unclear", why: `without [DONE]: ${text.slice(-200)}` };
  const parsed = data.map((one) => JSON.parse(one) as Json);
  const failed = parsed.findIndex((one) => one["type"] === "error" || one["error"] !== undefined);
  const words = parsed.map((one) => deltaOf(one)).join("");
  if (failed >= 0) {
    const isLast = failed === parsed.length - 1 && /KVROUTE_|Expected/.test(JSON.stringify(parsed[failed]));
    return isLast ? { kind: "error event", text: words } : { kind: "unclear", why: text };
  }
  const last = parsed.at(-1)?.["type"];
  const isEnded = isOpenAi || last === "message_stop" || last === "response.completed";
  return isEnded ? { kind: "whole", text: words } : { kind: "unclear", why: `no end: ${text.slice(-200)}` };
}

/** The words that an event of a stream brings. */
function deltaOf(event: Json): string {
  const [choice] = (event["choices"] ?? []) as { text?: string; delta?: { content?: string } }[];
  if (choice !== undefined) return choice.text ?? choice.delta?.content ?? "";
  const { type, delta } = event as { type?: string; delta?: unknown };
  if (type === "response.output_text.delta") return delta as string;
  return type === "content_block_delta" ? (delta as { text: string }).text : "";
}

/** The words of an answer that is no stream. */
function textOf(path: string, answer: Json): string {
  const first = (name: string) => (answer[name] as Json[])[0] as Json;
  if (path === "/v1/chat/completions") return (first("choices")["message"] as { content: string }).content;
  if (path === "/v1/completions") return first("choices")["text"] as string;
  if (path === "/v1/messages") return first("content")["text"] as string;
  if (path === "/v1/embeddings") return JSON.stringify(first("data")["embedding"]);
  return ((first("output")["content"] as Json[])[0] as { text: string }).text;
}
