import { OptionError } from "../../errors.js";
import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest } from "./choose.js";
import { missedBlocks } from "./least-loaded.js";

export interface CacheAwareOptions {
  /** The part of a prompt's blocks, 0 to 1, of which a worker must hold more to be preferred. Default 0.3. */
  readonly matchThreshold?: number | undefined;
}

export const MATCH_THRESHOLD_DEFAULT = 0.3;

/**
 * Chooses the worker that holds most of the prompt if that is more than a threshold, else the least loaded one.
 * Ties are broken at random. At 0 the longest prefix always wins; at 1 no match is ever enough.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if `matchThreshold` is not a number from 0 to 1
 */
export function cacheAware(options: CacheAwareOptions = {}): Policy {
  const matchThreshold = options.matchThreshold ?? MATCH_THRESHOLD_DEFAULT;
  if (!(matchThreshold >= 0 && matchThreshold <= 1)) {
    throw new OptionError(`Expected matchThreshold to be a number from 0 to 1, got ${matchThreshold}.`);
  }
  return {
    name: "cache-aware",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      const blocks = request.sequenceHashes.length;
      if (blocks > 0) {
        const index = chooseLowest(candidates, lackingOverlap, context);
        const overlap = candidates[index]?.overlapBlocks ?? 0;
        if (overlap / blocks > matchThreshold) return { index };
      }
      return { index: chooseLowest(candidates, missedBlocks, context) };
    },
  };
}

/** Turns "most overlap" into "lowest score". */
export function lackingOverlap(candidate: Candidate): number {
  return -candidate.overlapBlocks;
}
