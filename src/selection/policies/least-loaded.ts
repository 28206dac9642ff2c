import type { Candidate, Choice, Policy, PolicyContext, PolicyTerms, RoutingRequest } from "../policy.js";
import { chooseLowest, explained } from "./choose.js";

/**
 * Chooses the worker with the least prefill outstanding for its weight. Among equals, as all are while they are idle, it
 * takes the one that was given least lately, then the one that has had the fewest blocks to compute so far, and then any.
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
  const outstanding = leastOf(candidates, outstandingTokens);
  const isLeast = (candidate: Candidate): boolean => outstandingTokens(candidate) === outstanding;
  const recent = leastOf(candidates.filter(isLeast), recentTokens);
  const score = (candidate: Candidate): number =>
    isLeast(candidate) && recentTokens(candidate) === recent ? missedBlocks(candidate) : Number.POSITIVE_INFINITY;
  return explained(chooseLowest(candidates, score, context), candidates, context, leastLoadedTerms);
}

export function leastLoadedTerms(candidate: Candidate): PolicyTerms {
  return {
    cost: outstandingTokens(candidate),
    recentTokens: recentTokens(candidate),
    missedBlocks: missedBlocks(candidate),
  };
}

function leastOf(candidates: readonly Candidate[], read: (candidate: Candidate) => number): number {
  return candidates.reduce((least, candidate) => Math.min(least, read(candidate)), Number.POSITIVE_INFINITY);
}

function outstandingTokens({ load, weight }: Candidate): number {
  return load.activePrefillTokens / weight;
}

function recentTokens({ load, weight }: Candidate): number {
  return load.recentTokens / weight;
}

/** Reads what a worker has had to compute so far for its weight, in blocks. */
export function missedBlocks({ load, weight }: Candidate): number {
  return load.missedBlocks / weight;
}
