import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";

/** Chooses every worker with a probability as large as its weight among the weights. */
export function random(): Policy {
  return { name: "random", choose: chooseAtRandom };
}

/** Chooses one of one or more candidates, by their weights. */
export function chooseAtRandom(
  candidates: readonly Candidate[],
  _request: RoutingRequest,
  context: PolicyContext,
): Choice {
  const weights = candidates.map(({ weight }) => weight);
  return { index: drawByWeight(weights, context) };
}

/** Draws a position with a probability as large as its weight among the weights: 0 or more each, one of them above 0. */
export function drawByWeight(weights: readonly number[], context: PolicyContext): number {
  let left = context.random() * weights.reduce((sum, weight) => sum + weight, 0);
  let last = 0;
  for (const [index, weight] of weights.entries()) {
    if (weight === 0) continue;
    left -= weight;
    if (left < 0) return index;
    last = index;
  }
  return last; // what rounding left over
}
