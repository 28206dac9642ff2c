import { DisaggError, type DisaggErrorCode, KvrouteError } from "../../errors.js";
import { textOf } from "../common/given-up.js";

/** What a failure is about. */
export interface Whereabouts {
  readonly role: "prefill" | "decode";
  readonly rank: number;
  readonly requestId: bigint;
  /** Tokens of the answer that had arrived. */
  readonly tokens: number;
}

/** Makes the error of a request that one worker failed at. `what` goes on after "but it". */
export function failure(code: DisaggErrorCode, at: Whereabouts, what: string, cause?: unknown): DisaggError {
  const { role, rank, requestId, tokens } = at;
  const task = role === "prefill" ? "compute the prompt" : "generate the answer";
  const after = `after ${tokens} ${tokens === 1 ? "token" : "tokens"}`;
  return new DisaggError(
    code,
    `Expected ${role} worker ${rank} to ${task} of request ${requestId}, but it ${what}, ${after}.`,
    { cause, tokens, rank },
  );
}

/** Makes the error of a message that could not be handed over. */
export function unreachable(error: unknown, at: Whereabouts): DisaggError {
  if (error instanceof DisaggError) return error; // the reason that the send was given up for
  const closed = error instanceof KvrouteError && CLOSED.has(error.code);
  const code = closed ? "KVROUTE_DISAGG_CLOSED" : "KVROUTE_DISAGG_WORKER_LOST";
  return failure(code, at, `cannot be reached: ${textOf(error)}`, error);
}

/** Whether another prefill worker might do better. */
export function isWorthRetrying(error: unknown): boolean {
  return error instanceof DisaggError && !HOPELESS.has(error.code);
}

export function isFaultOf(rank: number, error: unknown): boolean {
  return error instanceof DisaggError && error.rank === rank;
}

const CLOSED: ReadonlySet<string> = new Set(["KVROUTE_TRANSPORT_CLOSED", "KVROUTE_TRANSPORT_BROKEN"]);

/** A KV cache is as large on every worker. */
const HOPELESS: ReadonlySet<string> = new Set(["KVROUTE_DISAGG_CLOSED", "KVROUTE_DISAGG_KV_REFUSED"]);
