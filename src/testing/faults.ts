import { badRequest } from "./http-error.js";

/** What may go wrong with a request. */
export type Fault =
  /** The connection fails before an answer: `fetch` rejects with a TypeError, the server closes the connection. */
  | { readonly kind: "refuse" }
  /** Nothing comes, no headers either, until the client goes away. */
  | { readonly kind: "hang" }
  /** An error of the protocol; the engine does not see the request. */
  | {
      readonly kind: "status";
      /** 400 to 599. */
      readonly status: number;
      readonly retryAfterSeconds?: number | undefined;
      readonly message?: string | undefined;
    }
  /** Status 200 and a body that is none of the protocol's. */
  | { readonly kind: "garbage" }
  /** The connection breaks in the middle of the event behind so many whole ones, or of a body that is no stream. */
  | { readonly kind: "die"; readonly afterEvents?: number | undefined }
  /** The body ends as if it were complete, in the middle of a character, behind so many whole events. */
  | { readonly kind: "truncate"; readonly afterEvents?: number | undefined }
  /** The headers come so much later, and each event or the body as well. */
  | { readonly kind: "slow"; readonly delayMs: number };

/** What `fetch` rejects with where a connection would break: a TypeError, as of any other `fetch`. */
export class BrokenOff extends TypeError {}

/** The header by which a client asks for a fault, in JSON. */
export const FAULT_HEADER = "x-kvroute-fault";

const KINDS: readonly string[] = ["refuse", "hang", "status", "garbage", "die", "truncate", "slow"];
const AFTER_MAX = 1_000_000;
const DELAY_MS_MAX = 2 ** 31 - 1;

/** Reads the fault that a client asks for. */
export function faultOf(headers: Headers): Fault | undefined {
  const text = headers.get(FAULT_HEADER);
  if (text === null) return undefined;
  try {
    return checkFault(JSON.parse(text));
  } catch (cause) {
    throw badRequest(`Expected ${FAULT_HEADER} to be a fault in JSON, got ${text}: ${(cause as Error).message}`);
  }
}

/** Checks that a fault can happen. */
export function checkFault(fault: unknown): Fault {
  const { kind, status, afterEvents, delayMs, retryAfterSeconds } = (fault ?? {}) as Record<string, unknown>;
  if (!KINDS.includes(kind as string)) {
    throw new TypeError(`Expected a fault of the kinds ${KINDS.join(", ")}, got ${JSON.stringify(fault)}.`);
  }
  if (kind === "status") checkNumber("status", status, 400, 599);
  if (kind === "slow") checkNumber("delayMs", delayMs, 0, DELAY_MS_MAX);
  if (afterEvents !== undefined) checkNumber("afterEvents", afterEvents, 0, AFTER_MAX);
  if (retryAfterSeconds !== undefined) checkNumber("retryAfterSeconds", retryAfterSeconds, 0, DELAY_MS_MAX);
  return fault as Fault;
}

function checkNumber(name: string, value: unknown, least: number, most: number): void {
  if (typeof value === "number" && value >= least && value <= most) return;
  throw new TypeError(`Expected ${name} of a fault to be a number from ${least} to ${most}, got ${String(value)}.`);
}
