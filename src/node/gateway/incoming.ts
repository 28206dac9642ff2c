import type { IncomingMessage } from "node:http";
import { GatewayError } from "../../errors.js";
import { tooLarge } from "../../gateway/body-limit.js";

/** What a request is for. */
export interface Target {
  readonly path: string;
  /** The query with its question mark, or nothing. */
  readonly query: string;
}

/** Targets that stay as they are: with dots, escapes or anything else a path may lead elsewhere than it seems to. */
const PLAIN = /^\/[\w/-]*(\?[\x21\x22\x24-\x7e]*)?$/;
const HERE = "http://kvroute";

/**
 * Reads the target of a request, in the form in which workers read it.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_PATH` if it is none
 */
export function targetOf(url: string): Target {
  if (PLAIN.test(url)) {
    const at = url.indexOf("?");
    return at < 0 ? { path: url, query: "" } : { path: url.slice(0, at), query: url.slice(at) };
  }
  try {
    const { pathname: path, search: query } = new URL(url.startsWith("/") ? `${HERE}${url}` : url);
    return { path, query };
  } catch {
    throw new GatewayError("KVROUTE_GATEWAY_PATH", "Expected a path or a URL as the target, got something else.");
  }
}

/**
 * Reads the body of a request, `undefined` where it has none.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_BODY_TOO_LARGE` as soon as it is longer than `maxBytes`; what the connection breaks
 *   with
 */
export function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array> | undefined {
  const { "content-length": length, "transfer-encoding": coding } = incoming.headers;
  if (coding === undefined && (length === undefined || length === "0")) return undefined;
  checkLength(incoming, maxBytes);
  const expected = length === undefined ? -1 : Number(length);
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) return reject(tooLarge(maxBytes)); // whoever refuses it lets the rest pass
      chunks.push(chunk);
      if (bytes === expected) resolve(joined(chunks));
    });
    incoming.on("end", () => resolve(joined(chunks)));
    incoming.on("error", reject);
  });
}

/** Puts chunks together, in memory that is not cleared before: for a long prompt that takes as long as copying it. */
function joined(chunks: readonly Uint8Array[]): Uint8Array {
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}

/** @throws {GatewayError} `KVROUTE_GATEWAY_BODY_TOO_LARGE` if a request says that its body is longer than `maxBytes` */
export function checkLength({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}
