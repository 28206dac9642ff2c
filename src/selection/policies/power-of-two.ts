import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";

/** Draws two workers and chooses the one with fewer active requests for its weight, the first drawn where they are equal. */
export function powerOfTwo(): Policy {
  return {
    name: "power-of-two",
    choose(candidates: readonly Candidate[], _request: RoutingRequest, context: PolicyContext): Choice {
      const count = candidates.length;
      const first = Math.floor(context.random() * count);
      if (count === 1) return { index: first };
      const other = Math.floor(context.random() * (count - 1));
      const second = other < first ? other : other + 1; // never the first again
      return { index: requestsOf(candidates[second]) < requestsOf(candidates[first]) ? second : first };
    },
  };
}

function requestsOf(candidate: Candidate | undefined): number {
  return candidate === undefined ? Number.POSITIVE_INFINITY : candidate.load.activeRequests / candidate.weight;
}
