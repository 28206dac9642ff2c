import type { Candidate, Choice, Policy } from "../policy.js";

/** Chooses the workers in turn, in the order of the list of candidates. */
export function roundRobin(): Policy {
  let next = 0;
  return {
    name: "round-robin",
    choose(candidates: readonly Candidate[]): Choice {
      const index = next % candidates.length; // the list may have become shorter
      next = index + 1;
      return { index };
    },
  };
}
