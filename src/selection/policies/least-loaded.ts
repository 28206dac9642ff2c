import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest } from "./choose.js";

/**
 * Chooses the worker with the least prefill outstanding for its weight. Among equals, as all are while they are idle, it
 * takes the one that has had the fewest blocks to compute so far, and then any.
 */
export function leastLoaded(): Policy {
  return { name: "least-loaded", choose: chooseLeastLoaded };
}

/** Chooses among one or more candidates as `least-loaded` does. */
export function chooseLeastLoaded(
  candidates: readonly Candidate[],
  _request: RoutingRequest,
  context: PolicyContext,
): Choice {
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) least = Math.min(least, outstanding(candidate));
  const score = (candidate: Candidate): number =>
    outstanding(candidate) === least ? missedBlocks(candidate) : Number.POSITIVE_INFINITY;
  return { index: chooseLowest(candidates, score, context) };
}

function outstanding({ load, weight }: Candidate): number {
  return load.activePrefillTokens / weight;
}

/** Reads what a worker has computed so far for its weight, in blocks. */
export function missedBlocks({ load, weight }: Candidate): number {
  return load.missedBlocks / weight;
}
