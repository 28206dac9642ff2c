import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { explained } from "./choose.js";

/** Draws two workers and chooses the one with fewer active requests for its weight, the first drawn where they are equal. */
export function powerOfTwo(): Policy {
  return {
    name: "power-of-two",
    choose(candidates: readonly Candidate[], _request: RoutingRequest, context: PolicyContext): Choice {
      const [first, second] = drawTwo(candidates.length, context);
      const index = activeRequests(candidates, second) < activeRequests(candidates, first) ? second : first;
      return explained(index, candidates, context, (_, at) => ({
        cost: activeRequests(candidates, at),
        drawn: at === first || at === second ? 1 : 0,
      }));
    },
  };
}

/** Draws two different positions, or the only one twice. */
function drawTwo(count: number, context: PolicyContext): readonly [number, number] {
  const first = Math.floor(context.random() * count);
  if (count === 1) return [first, first];
  const other = Math.floor(context.random() * (count - 1));
  return [first, other < first ? other : other + 1]; // never the first again
}

function activeRequests(candidates: readonly Candidate[], index: number): number {
  const { load, weight } = candidates[index] as Candidate;
  return load.activeRequests / weight;
}
