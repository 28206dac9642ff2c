import { readBytes } from "../bytes.js";
import { tooLarge } from "./body-limit.js";
import { HeaderList } from "./header-list.js";
import { sharedSignal } from "./shared-signal.js";
import type { StopSignal } from "./stop.js";
import type { Answer, GatewayRequest } from "./types.js";

const encoder = /* @__PURE__ */ new TextEncoder();
/** Statuses whose answers have no body. */
const NULL_BODY = [101, 103, 204, 205, 304];
/** What a `Response` lets stand behind the status. */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
/** What relative URLs are relative to; nobody connects to it. */
const HERE = "http://kvroute";

/**
 * Reads what `fetch` is called with.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_BODY_TOO_LARGE` if the body has more than `maxBodyBytes`
 */
export async function requestOf(
  input: Request | string | URL,
  init: RequestInit | undefined,
  maxBodyBytes: number,
): Promise<GatewayRequest> {
  const isPlain = typeof input === "string" || input instanceof URL;
  const given = init?.body;
  const bytes = isPlain ? bytesOf(given, maxBodyBytes) : undefined;
  if (!isPlain || (bytes === undefined && given !== undefined && given !== null)) {
    const request = new Request(isPlain ? new URL(input, HERE) : input, init);
    return requestOfRequest(request, maxBodyBytes, callersSignal(init?.signal ?? request.signal));
  }
  const { pathname: path, search: query } = new URL(input, HERE);
  const headers = HeaderList.of(new Headers(init?.headers));
  if (typeof given === "string" && !headers.has("content-type"))
    headers.append("content-type", "text/plain;charset=UTF-8");
  const signal = callersSignal(init?.signal);
  const text = typeof given === "string" ? given : undefined;
  return { method: (init?.method ?? "GET").toUpperCase(), path, query, headers, bytes, text, signal };
}

/** Reads a request as a server receives it. */
export async function requestOfRequest(
  request: Request,
  maxBodyBytes: number,
  signal: StopSignal | undefined = request.signal,
): Promise<GatewayRequest> {
  const { method, headers, body } = request;
  const { pathname: path, search: query } = new URL(request.url);
  if (Number(headers.get("content-length")) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  const bytes = body === null ? undefined : await readBytes(body, maxBodyBytes, () => tooLarge(maxBodyBytes), signal);
  return { method, path, query, headers: HeaderList.of(headers), bytes, signal };
}

/** Callers may have one signal for many requests. */
function callersSignal(signal: AbortSignal | null | undefined): StopSignal | undefined {
  return signal === null || signal === undefined ? undefined : sharedSignal(signal);
}

/** What is known of a request before it is read. */
export interface RequestHead extends Pick<GatewayRequest, "method" | "path"> {
  readonly signal: AbortSignal | undefined;
}

/** Gives the head of what `fetch` is called with; the path is empty for what is no URL. */
export function headOf(input: Request | string | URL, init: RequestInit = {}): RequestHead {
  const given = input instanceof Request ? input : undefined;
  const { method = given?.method ?? "GET", signal = given?.signal } = init;
  return { method: method.toUpperCase(), path: pathOf(given?.url ?? (input as string)), signal: signal ?? undefined };
}

function pathOf(url: string | URL): string {
  try {
    return new URL(url, HERE).pathname;
  } catch {
    return "";
  }
}

/**
 * Makes the response for an answer. Its body is fetched as it is read.
 *
 * @throws what the runtime says of a status or of headers that a `Response` cannot have
 */
export function responseOf({ status, statusText: reason, headers: list, body }: Answer): Response {
  const headers = new Headers(list.toPairs());
  const statusText = REASON.test(reason) ? reason : "";
  if (body === undefined || NULL_BODY.includes(status)) {
    body?.cancel().catch(() => {});
    return new Response(null, { status, statusText, headers });
  }
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await body.read();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: (reason) => body.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { status, statusText, headers });
}

/** The bytes of a body that are there at once, `undefined` for one that has to be read. */
function bytesOf(body: unknown, maxBytes: number): Uint8Array | undefined {
  const bytes = encode(body, maxBytes);
  if (bytes !== undefined && bytes.length > maxBytes) throw tooLarge(maxBytes);
  return bytes;
}

function encode(body: unknown, maxBytes: number): Uint8Array | undefined {
  if (typeof body === "string") {
    if (body.length > maxBytes) throw tooLarge(maxBytes); // it has a byte a character at least
    return encoder.encode(body);
  }
  if (body instanceof ArrayBuffer) return new Uint8Array(body.slice(0));
  if (!ArrayBuffer.isView(body)) return undefined;
  return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(); // the caller may write to it meanwhile
}
