import { readBytes } from "../bytes.js";
import { HttpRequestError } from "../errors.js";
import { parseJson } from "./json.js";
import { clipped } from "./text.js";

/**
 * Reads a body of JSON.
 *
 * @returns what it holds; `undefined` if it is empty
 * @throws {HttpRequestError} if it is longer than `maxBytes`, of another type, or no JSON
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const bytes = await bytesOf(request, maxBytes);
  if (bytes.length === 0) return undefined;
  checkType(request.headers.get("content-type"));
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? cause.message : "it is not UTF-8";
    const message = `Expected a body of JSON, but it cannot be read: ${clipped(reason)}.`;
    throw new HttpRequestError("KVROUTE_HTTP_BODY", message, { cause });
  }
}

async function bytesOf({ headers, body }: Request, maxBytes: number): Promise<Uint8Array> {
  const stated = Number(headers.get("content-length") ?? 0);
  if (stated > maxBytes) throw tooLarge(maxBytes, `one of ${stated}`);
  if (body === null) return new Uint8Array(0);
  try {
    return await readBytes(body, maxBytes, () => tooLarge(maxBytes, "a longer one"));
  } catch (cause) {
    if (cause instanceof HttpRequestError) throw cause;
    throw new HttpRequestError("KVROUTE_HTTP_BODY", "Expected a whole body, but it broke off.", { cause });
  }
}

// Of other types, or of none, a page of any site can send a body to this server without asking it first.
function checkType(type: string | null): void {
  if (type !== null && /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type.trim())) return;
  const got = type === null ? "none" : `"${clipped(type)}"`;
  throw new HttpRequestError("KVROUTE_HTTP_MEDIA_TYPE", `Expected the content-type application/json, got ${got}.`);
}

function tooLarge(maxBytes: number, got: string): HttpRequestError {
  return new HttpRequestError("KVROUTE_HTTP_TOO_LARGE", `Expected a body of at most ${maxBytes} bytes, got ${got}.`);
}
