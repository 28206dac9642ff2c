import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { lackingOverlap } from "./cache-aware.js";
import { chooseLowest, explained } from "./choose.js";

/**
 * Chooses the worker that holds most of the prompt, whatever its load, ties at random. It is here to be compared with, and a
 * trap in production: where all prompts begin alike, as with a shared system prompt, the first worker gets them all.
 */
export function longestPrefix(): Policy {
  return {
    name: "longest-prefix",
    choose(candidates: readonly Candidate[], _request: RoutingRequest, context: PolicyContext): Choice {
      const index = chooseLowest(candidates, lackingOverlap, context);
      return explained(index, candidates, context, (candidate) => ({
        cost: lackingOverlap(candidate),
        overlapBlocks: candidate.overlapBlocks,
      }));
    },
  };
}
