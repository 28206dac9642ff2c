import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest, explained } from "./choose.js";
import { missedBlocks } from "./least-loaded.js";
import { numberOption } from "./numbers.js";

export interface CacheAwareOptions {
  /** The part of a prompt's blocks, 0 to 1, of which a worker must hold more to be preferred. Default 0.3. */
  readonly matchThreshold?: number | undefined;
}

export const MATCH_THRESHOLD_DEFAULT = 0.3;

/**
 * Chooses the worker that holds most of the prompt if that is more than a threshold, else the one that has had the fewest
 * blocks to compute so far for its weight. Of several that hold as much, as they all do of a shared system prompt, it takes
 * the latter too, and then any.
 * At 0 the longest prefix always wins; at 1 no match is ever enough.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if `matchThreshold` is not a number from 0 to 1
 */
export function cacheAware(options: CacheAwareOptions = {}): Policy {
  const matchThreshold = numberOption("matchThreshold", options.matchThreshold ?? MATCH_THRESHOLD_DEFAULT, 0, 1);
  return {
    name: "cache-aware",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      const blocks = request.sequenceHashes.length;
      let most = 0;
      for (const candidate of candidates) most = Math.max(most, candidate.overlapBlocks);
      const isMatch = blocks > 0 && most / blocks > matchThreshold;
      const index = chooseLowest(candidates, isMatch ? loadOfHolders(most) : missedBlocks, context);
      return explained(index, candidates, context, (candidate) => ({
        cost: isMatch ? lackingOverlap(candidate) : missedBlocks(candidate),
        overlapBlocks: candidate.overlapBlocks,
        missedBlocks: missedBlocks(candidate),
      }));
    },
  };
}

/** The load of those who hold so many blocks of the prompt; nobody else is wanted. */
function loadOfHolders(overlapBlocks: number): (candidate: Candidate) => number {
  return (candidate) =>
    candidate.overlapBlocks === overlapBlocks ? missedBlocks(candidate) : Number.POSITIVE_INFINITY;
}

/** Turns "most overlap" into "lowest score". */
export function lackingOverlap(candidate: Candidate): number {
  return -candidate.overlapBlocks;
}
