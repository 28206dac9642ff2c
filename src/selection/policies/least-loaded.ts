import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest } from "./choose.js";

/** Chooses the worker that has had the fewest blocks to compute so far, ties at random. */
export function leastLoaded(): Policy {
  return {
    name: "least-loaded",
    choose(candidates: readonly Candidate[], _request: RoutingRequest, context: PolicyContext): Choice {
      return { index: chooseLowest(candidates, missedBlocks, context) };
    },
  };
}

/** Reads the load that `least-loaded` and the fallback of `cache-aware` compare, in blocks. */
export function missedBlocks(candidate: Candidate): number {
  return candidate.load.missedBlocks;
}
