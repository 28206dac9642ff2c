import type { KvrouteError } from "../errors.js";
import type { Dialect } from "./dialect.js";
import { HeaderList } from "./header-list.js";
import type { Answer } from "./types.js";

const encoder = /* @__PURE__ */ new TextEncoder();

/** The types of errors in Anthropic's protocol, by status. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** Answers with an error, in the envelope of the request's protocol. */
export function errorAnswer(error: KvrouteError, path: string): Answer {
  const { status = 500, code, message } = error;
  const body = encoder.encode(
    JSON.stringify(/^\/v1\/messages(\/|$)/.test(path) ? anthropic(status, message) : openAi(status, code, message)),
  );
  const answer = jsonAnswer(status, body);
  const { retryAfterMs } = error as { readonly retryAfterMs?: number | undefined };
  if (retryAfterMs !== undefined) answer.headers.set("retry-after", String(Math.ceil(retryAfterMs / 1000)));
  return answer;
}

/** Answers with bytes of JSON. */
export function jsonAnswer(status: number, body: Uint8Array): Answer {
  const headers = HeaderList.of([
    ["content-type", "application/json"],
    ["content-length", String(body.length)],
  ]);
  return { status, statusText: "", headers, body: bodyOf(body) };
}

/** Ends a stream that breaks off: an event with the error, and whatever the protocol has stand last. */
export function errorEvent({ status = 500, code, message }: KvrouteError, dialect: Dialect): Uint8Array {
  if (dialect === "messages") return event(anthropic(status, message), "error");
  if (dialect === "responses") return event({ type: "error", code, message, param: null }, "error");
  return encoder.encode(`data: ${JSON.stringify(openAi(status, code, message))}\n\ndata: [DONE]\n\n`);
}

/** Makes a body of bytes that are all there. */
function bodyOf(bytes: Uint8Array): NonNullable<Answer["body"]> {
  let left: Uint8Array | undefined = bytes;
  return {
    async read() {
      const given = left;
      left = undefined;
      return given;
    },
    async cancel() {
      left = undefined;
    },
  };
}

function openAi(status: number, code: string, message: string) {
  const type = status === 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param: null, code } };
}

function anthropic(status: number, message: string) {
  return { type: "error", error: { type: ANTHROPIC_TYPES[status] ?? "api_error", message } };
}

function event(data: object, name: string): Uint8Array {
  return encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
