import type { Explanation, Selection, SessionDecision } from "../selection/service.js";
import type { Fleet } from "./fleet.js";
import type { HeaderList } from "./header-list.js";
import { BYTES_PER_TOKEN } from "./options.js";

/** Says where a request has been sent, and why. */
export interface Receipt {
  readonly worker: string;
  /** What became of the worker of the session; `undefined` for a request that is of no conversation. */
  readonly decision: SessionDecision | undefined;
  readonly model: string;
  /** Tokens of the prompt, estimated. */
  readonly promptTokens: number;
  /** Tokens of these that the worker is believed to have cached. */
  readonly predictedCachedTokens: number;
  /** Which try this is, from 1. */
  readonly attempt: number;
  /** How long it waited for a worker that is free. */
  readonly queuedMs: number;
  /** How long all else took, from the request to the sending. */
  readonly routingMs: number;
  /** What each worker would have cost, as the policy says it. */
  readonly explanation: Explanation | undefined;
}

export const WORKER_HEADER = "x-kvroute-worker";
export const DECISION_HEADER = "x-kvroute-decision";
export const CACHED_TOKENS_HEADER = "x-kvroute-cached-tokens";
export const ROUTING_HEADER = "x-kvroute-routing-ms";
const SERVER_TIMING = "server-timing";

/** Writes a receipt into the headers of an answer. What the engine says of its own time stays. */
export function stamp(headers: HeaderList, receipt: Receipt): void {
  const routing = receipt.routingMs.toFixed(3);
  headers.set(WORKER_HEADER, asHeader(receipt.worker));
  headers.delete(DECISION_HEADER); // that of a router behind this one
  if (receipt.decision !== undefined) headers.set(DECISION_HEADER, receipt.decision);
  headers.set(CACHED_TOKENS_HEADER, String(receipt.predictedCachedTokens));
  headers.set(ROUTING_HEADER, routing);
  headers.append(SERVER_TIMING, `kvroute;dur=${routing}`);
}

/**
 * Says what became of the worker of a session. The service calls it lost where it was no candidate; a worker that is still
 * there and takes requests again soon, busy or behind its breaker, has only spilled.
 */
export function decisionOf({ decision, home }: Selection, fleet: Fleet): SessionDecision | undefined {
  if (decision !== "switch" || home === undefined) return decision;
  return fleet.find(String(home.workerId))?.isDraining === false ? "spill" : "switch";
}

/** Turns tokens that workers are compared by into those of a model. */
export function modelTokens(tokens: number, bytesPerToken: number): number {
  return Math.round((tokens * BYTES_PER_TOKEN) / bytesPerToken);
}

/** Ids may be any text; headers may not. */
function asHeader(id: string): string {
  return id.replace(/[^\x21-\x7e]/g, "?");
}
