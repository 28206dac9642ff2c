import type { Logger } from "pino";
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

/** Logs with what the router has failed at a request. Of what it refuses it tells itself. */
export function logRefusal(log: Logger, { method, path, status, error }: Refusal): void {
  log.error({ method, path, status, outcome: "refused", err: error }, "request");
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
