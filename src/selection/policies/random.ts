import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";

/** Chooses every worker with the same probability. */
export function random(): Policy {
  return { name: "random", choose: chooseAtRandom };
}

/** Chooses one of one or more candidates, each with the same probability. */
export function chooseAtRandom(
  candidates: readonly Candidate[],
  _request: RoutingRequest,
  context: PolicyContext,
): Choice {
  return { index: Math.floor(context.random() * candidates.length) };
}
