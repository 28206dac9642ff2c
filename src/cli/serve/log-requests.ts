import type { Logger } from "pino";
import { KvrouteError } from "../../errors.js";
import type { RequestRecord } from "../../gateway/router.js";
import type { Refusal } from "../../node/serve-gateway.js";

const UNAUTHORIZED = 401;

/** Logs a request: what went wrong on this side of the client stands out. */
export function logRequest(log: Logger, record: RequestRecord): void {
  const isTrouble = record.outcome === "failed" || record.outcome === "stalled" || record.status >= 500;
  const fields = {
    ...record,
    queuedMs: rounded(record.queuedMs),
    routingMs: rounded(record.routingMs),
    ttftMs: rounded(record.ttftMs),
    durationMs: rounded(record.durationMs),
  };
  log[isTrouble ? "warn" : "info"](fields, "request");
}

/** Logs a request that the router has not heard of, say because it has no key. */
export function logRefusal(log: Logger, { method, path, status, error }: Refusal): void {
  const isKnown = error instanceof KvrouteError;
  const fields = { method, path, status, outcome: "refused", error: isKnown ? error.code : undefined };
  if (isKnown) log.info(fields, "request");
  else log.error({ ...fields, err: error }, "request");
}

/**
 * Logs what may change something beside the engines' paths, and whoever lacks the token. Other reading is done every few seconds,
 * and says nothing.
 */
export async function logControl(log: Logger, request: Request, answer: () => Promise<Response>): Promise<Response> {
  const response = await answer();
  const { pathname: path } = new URL(request.url);
  const { method } = request;
  const { status } = response;
  const isReading = method === "GET" || method === "HEAD";
  if (!isReading || status === UNAUTHORIZED) log.info({ method, path, status }, "control");
  return response;
}

/** Rounds a time to microseconds. */
function rounded(timeMs: number | undefined): number | undefined {
  return timeMs === undefined ? undefined : Math.round(timeMs * 1_000) / 1_000;
}
