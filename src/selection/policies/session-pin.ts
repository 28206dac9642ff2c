import type { WorkerId } from "../../core/keys.js";
import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { SessionTable, type SessionTableOptions } from "../sessions.js";
import { explained, isSameWorker } from "./choose.js";
import { chooseLeastLoaded, leastLoadedTerms } from "./least-loaded.js";

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
      const index = pinned < 0 ? chooseLeastLoaded(candidates, request, context).index : pinned;
      sessions.record("", session, (candidates[index] as Candidate).worker, context.nowMs);
      return explained(index, candidates, context, (candidate, at) => ({
        ...leastLoadedTerms(candidate),
        pinned: at === pinned ? 1 : 0,
      }));
    },
    removeWorker(workerId: WorkerId): void {
      sessions.removeWorker(workerId);
    },
  };
}
