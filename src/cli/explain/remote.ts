import { readBytes } from "../../bytes.js";
import { KvrouteError, OptionError, UpstreamError } from "../../errors.js";
import type { RouteExplanation } from "../../gateway/explain.js";
import { explainAnswer } from "../../http/schemas/gateway.js";
import type { Asked } from "./rehearsal.js";
import { quiet } from "./text.js";

const TIMEOUT_MS = 30_000;
const BYTES_MAX = 16_777_216;
/** Of what a server says is wrong. */
const SAID_LENGTH_MAX = 2_048;

/**
 * Asks a server that runs where it would send a request, and why.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if the URL is none, or the token is not that of the server
 * @throws {UpstreamError} `KVROUTE_UPSTREAM_UNREACHABLE` if no kvroute answers there
 * @throws {KvrouteError} what the server says is wrong with the request
 */
export async function askServer(server: string, token: string | undefined, asked: Asked): Promise<RouteExplanation> {
  const { status, text } = await post(urlOf(server), token, asked);
  const said = parse(text);
  if (status === 200 && explainAnswer.safeParse(said).success) return said as unknown as RouteExplanation;
  const { error, code } = said;
  if (code === "KVROUTE_HTTP_UNAUTHORIZED" || code === "KVROUTE_HTTP_NOT_FOUND") {
    const got =
      code === "KVROUTE_HTTP_NOT_FOUND" ? "one of a server without any" : token === undefined ? "none" : "another";
    throw new OptionError(`Expected --control-token to be that of the server, got ${got}.`);
  }
  if (typeof error === "string" && typeof code === "string" && /^KVROUTE_\w+$/.test(code)) {
    throw new KvrouteError(code as `KVROUTE_${string}`, quiet(error).slice(0, SAID_LENGTH_MAX));
  }
  throw unreachable(server, `status ${status} of something else`);
}

function urlOf(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") {
    return new URL(`${url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "")}/explain`, url); // clients have it with /v1
  }
  throw new OptionError("Expected --server to be an http or https URL without credentials, got another text.");
}

async function post(url: URL, token: string | undefined, { path, headers, bytes }: Asked) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const body = { path, headers: Object.fromEntries(headers), body: new TextDecoder().decode(bytes) };
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { ...authorization, "content-type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const tooLong = () => new Error(`its answer has more than ${BYTES_MAX} bytes`);
    const answer = response.body === null ? new Uint8Array(0) : await readBytes(response.body, BYTES_MAX, tooLong);
    return { status: response.status, text: new TextDecoder().decode(answer) };
  } catch (cause) {
    throw unreachable(url.origin, "none", cause);
  }
}

/** Reads an object of JSON, an empty one of anything else. */
function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function unreachable(server: string, got: string, cause?: unknown): UpstreamError {
  return new UpstreamError(
    "KVROUTE_UPSTREAM_UNREACHABLE",
    `Expected an answer of the kvroute at ${server}, got ${got}.`,
    { cause },
  );
}
