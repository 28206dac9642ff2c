import { UpstreamError } from "../errors.js";
import { HeaderList } from "./header-list.js";
import { checkHeader } from "./header-text.js";
import { checkBegin } from "./sendable.js";
import type { StopSignal } from "./stop.js";
import type { Answer, AnswerBody } from "./types.js";

/** What is sent to a worker. */
export interface UpstreamRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  readonly bytes?: Uint8Array | undefined;
  /** Ends the request at once, its answer too. */
  readonly signal: StopSignal;
}

/**
 * Carries requests to workers. `send` gives the answer as soon as its headers are there, and rejects where none comes, with
 * the reason of the signal where that ended it, and a `GatewayError` where the request is at fault and none could be sent: that
 * says nothing of the worker. The body comes as it was sent, with nothing between it and the worker but
 * what the protocol needs; it rejects where the connection breaks, and a body that ended whole ends with `undefined`.
 */
export interface Upstream {
  send(request: UpstreamRequest): Promise<Answer>;
}

/** Names of headers that are about one connection, or that the client of HTTP writes itself. */
export const OF_THE_CONNECTION: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
export const WRITTEN_BY_CLIENT: readonly string[] = ["host", "content-length", "accept-encoding", "expect"];
const REDIRECTED = 0; // what a browser shows of a redirect that it was told not to follow

/** Reaches workers by the `fetch` of the runtime, or by another one. */
export function fetchUpstream(send: (url: string, init: RequestInit) => Promise<Response> = globalFetch): Upstream {
  return {
    async send({ method, url, headers, bytes, signal }) {
      checkBegin(method, url, bytes);
      const init: RequestInit = {
        method,
        headers: new Headers(requestHeaders(headers).toPairs()),
        signal: abortSignalOf(signal),
        redirect: "manual",
      };
      if (bytes !== undefined && bytes.length > 0) init.body = bytes as Uint8Array<ArrayBuffer>;
      const response = await send(url, init);
      if (response.status === REDIRECTED) {
        throw new UpstreamError("KVROUTE_UPSTREAM_UNREACHABLE", "Expected an answer, got a redirect.");
      }
      const { status, statusText, body } = response;
      return {
        status,
        statusText,
        headers: answerHeaders(response.headers),
        body: body === null ? undefined : new FetchBody(body),
      };
    },
  };
}

// Looked up at each call: whoever replaces the global one later means this one too.
const globalFetch = (url: string, init: RequestInit) => fetch(url, init);

class FetchBody implements AnswerBody {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  async read(): Promise<Uint8Array | undefined> {
    const { value } = await this.#reader.read();
    return value;
  }

  cancel(reason?: unknown): Promise<void> {
    return this.#reader.cancel(reason);
  }
}

/** Copies the headers of a request without those that are about the connection to the caller. */
function requestHeaders(headers: HeaderList): HeaderList {
  const sent = headers.copy();
  const named = sent.get("connection")?.split(",") ?? [];
  for (const name of named) sent.delete(name.trim().toLowerCase());
  for (const name of OF_THE_CONNECTION) sent.delete(name);
  for (const name of WRITTEN_BY_CLIENT) sent.delete(name);
  for (const [name, value] of sent) checkHeader(name, value);
  return sent;
}

// `fetch` has decoded the body: what encoding and length it had on the wire is not true any more.
function answerHeaders(headers: Headers): HeaderList {
  const given = HeaderList.of(headers);
  for (const name of OF_THE_CONNECTION) given.delete(name);
  if (!given.has("content-encoding")) return given;
  given.delete("content-encoding");
  given.delete("content-length");
  return given;
}

/** Makes an `AbortSignal` that follows another signal, for what takes nothing else. */
export function abortSignalOf(signal: StopSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  const follow = () => controller.abort(signal.reason);
  if (signal.aborted) follow();
  else signal.addEventListener("abort", follow);
  return controller.signal;
}
