import type { SelectRequest } from "../selection/service.js";
import { SESSION_ID_LENGTH_MAX } from "../selection/sessions.js";
import { type Dialect, dialectOf } from "./dialect.js";
import { BYTES_PER_TOKEN } from "./options.js";
import { isObject, parseBody, parseText } from "./prompt/body.js";
import { type PromptPath, promptKeyOf } from "./prompt.js";
import { type Session, sessionOf } from "./session.js";
import type { Tenants } from "./tenants.js";
import type { GatewayRequest } from "./types.js";

/** A request and what it is routed by. */
export interface Prepared {
  readonly request: GatewayRequest;
  readonly dialect: Dialect | undefined;
  readonly model: string;
  readonly promptBytes: number;
  readonly tenant: string;
  /** The response that the request goes on from or is about: only the worker that keeps it can serve the request. */
  readonly storedId: string | undefined;
  readonly session: Session | undefined;
  readonly select: SelectRequest;
}

const BYTE_ORDER_MARK = "\ufeff"; // decoders drop it
const NO_BYTES = new Uint8Array(0);

/**
 * Reads of a request what it is routed by: at once where its tenant is remembered.
 *
 * @throws {BodyError} if its path has a known protocol and its body cannot be read
 */
export function prepare(request: GatewayRequest, blockBytes: number, tenants: Tenants): Prepared | Promise<Prepared> {
  const tenant = request.tenant ?? tenants.of(request.headers);
  return typeof tenant === "string"
    ? prepareFor(tenant, request, blockBytes)
    : tenant.then((name) => prepareFor(name, request, blockBytes));
}

function prepareFor(tenant: string, request: GatewayRequest, blockBytes: number): Prepared {
  const { method, path, headers, bytes = NO_BYTES, text } = request;
  const dialect = dialectOf(method, path);
  if (dialect === undefined) {
    const storedId = idOf(/^\/v1\/responses\/([^/]+)/.exec(path)?.[1]);
    const select = { sequenceHashes: [], islTokens: 1 };
    return { request, dialect, model: "", promptBytes: 0, tenant, storedId, session: undefined, select };
  }
  const read = text === undefined || text.startsWith(BYTE_ORDER_MARK) ? parseBody(bytes) : parseText(text);
  const key = promptKeyOf(path as PromptPath, bytes, { blockBytes, tenant, parsed: read });
  const { model, promptBytes, sequenceHashes, fingerprint, parsed } = key;
  const session = sessionOf(headers, parsed, fingerprint);
  const select = {
    sequenceHashes,
    islTokens: Math.max(1, Math.ceil(promptBytes / BYTES_PER_TOKEN)),
    session: session?.id,
    tenant,
    affinityKey: fingerprint,
  };
  const isResponses = dialect === "responses" && isObject(parsed);
  const storedId = isResponses ? idOf(parsed["previous_response_id"]) : undefined;
  return { request, dialect, model, promptBytes, tenant, storedId, session, select };
}

/** Gives an id that can be remembered, `undefined` for anything else. */
export function idOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= SESSION_ID_LENGTH_MAX ? value : undefined;
}
