import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { SessionTable, type SessionTableOptions } from "../sessions.js";
import { isSameWorker } from "./choose.js";
import { chooseLeastLoaded } from "./least-loaded.js";

export interface SessionPinOptions extends SessionTableOptions {}

/**
 * Chooses the worker that had the session's last request, whatever its load; for a new session, or where that worker is not
 * among the candidates, and for a request without a session, the least loaded one.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function sessionPin(options: SessionPinOptions = {}): Policy {
  const sessions = new SessionTable(options);
  return {
    name: "session-pin",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      const { session } = request;
      if (session === undefined) return chooseLeastLoaded(candidates, request, context);
      const home = sessions.find("", session, context.nowMs);
      const pinned = home === undefined ? -1 : candidates.findIndex(({ worker }) => isSameWorker(worker, home));
      const choice = pinned < 0 ? chooseLeastLoaded(candidates, request, context) : { index: pinned };
      const chosen = candidates[choice.index] as Candidate;
      sessions.record("", session, chosen.worker, context.nowMs);
      return choice;
    },
  };
}
