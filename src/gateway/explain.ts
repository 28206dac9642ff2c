import type { PolicyTerms } from "../selection/policy.js";
import type { SessionDecision } from "../selection/service.js";
import { candidatesOf, reasonAgainst } from "./candidates.js";
import type { Wanted } from "./fleet.js";
import type { Prepared } from "./prepare.js";
import { decisionOf, modelTokens } from "./receipt.js";
import type { Session } from "./session.js";
import type { Station } from "./station.js";

/** Where a request would go now, and why. */
export interface RouteExplanation {
  /** Empty where the body names none. */
  readonly model: string;
  /** Bytes of the prompt's canonical text. */
  readonly promptBytes: number;
  /** Tokens of the prompt, estimated by how many bytes a token of the model has. */
  readonly promptTokens: number;
  readonly session: Session | undefined;
  readonly policy: string;
  /** The worker that would have the request; `undefined` where it would wait for one that is free. */
  readonly worker: string | undefined;
  /** What would become of the worker of the session. */
  readonly decision: SessionDecision | undefined;
  /** Full blocks of the prompt. */
  readonly blocks: number;
  /** Leading blocks that many unfinished requests contain. */
  readonly hotBlocks: number;
  readonly candidates: readonly RouteCandidate[];
  /** Workers that cannot have it, and what keeps them from it. */
  readonly excluded: readonly { readonly worker: string; readonly reason: string }[];
}

/** A worker that may have a request. */
export interface RouteCandidate {
  readonly worker: string;
  readonly isChosen: boolean;
  /** Leading blocks of the prompt that it is believed to hold. */
  readonly cachedBlocks: number;
  /** Tokens of these, estimated. */
  readonly cachedTokens: number;
  readonly inFlight: number;
  /** The terms of the policy by name; a policy without a cost has none. */
  readonly terms: PolicyTerms;
}

/**
 * Says where a request would go now, and why. Books nothing; a policy that takes turns takes one.
 *
 * @throws {GatewayError} `KVROUTE_GATEWAY_MODEL`, {NoWorkerError} `KVROUTE_NO_WORKER` if no worker may have it
 */
export function explain(station: Station, prepared: Prepared): RouteExplanation {
  const { fleet, service, settings, rates, clock } = station;
  const { model, promptBytes, session, select } = prepared;
  const wanted: Wanted = { model, keeper: station.keeperOf(prepared), nowMs: clock.now() };
  const allowedWorkerIds = candidatesOf(fleet, wanted);
  const excluded = fleet.workers.flatMap((worker) => {
    const reason = reasonAgainst(worker, fleet, wanted);
    return reason === undefined ? [] : [{ worker: worker.settings.id, reason }];
  });
  const bytesPerToken = rates.get(model);
  const promptTokens = modelTokens(select.islTokens as number, bytesPerToken);
  const about = { model, promptBytes, promptTokens, session, policy: settings.policy.name, excluded };
  const blocks = select.sequenceHashes?.length ?? 0;
  if (allowedWorkerIds === "busy") {
    return { ...about, worker: undefined, decision: undefined, blocks, hotBlocks: 0, candidates: [] };
  }
  const known = fleet.workers.map(({ settings }) => settings.id); // in the books there may be others
  const selection = service.select({ ...select, allowedWorkerIds: allowedWorkerIds ?? known, explain: true });
  const { candidates = [], hotBlocks = 0 } = selection.explanation ?? {};
  return {
    ...about,
    ...{ blocks, hotBlocks },
    worker: String(selection.worker.workerId),
    decision: decisionOf(selection, fleet),
    candidates: candidates.map(({ worker: { workerId }, isChosen, overlapBlocks, terms }) => ({
      worker: String(workerId),
      isChosen,
      cachedBlocks: overlapBlocks,
      cachedTokens: Math.min(promptTokens, modelTokens(overlapBlocks * selection.blockSize, bytesPerToken)),
      inFlight: fleet.find(String(workerId))?.inFlight ?? 0,
      terms,
    })),
  };
}
