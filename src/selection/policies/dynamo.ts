import { type DynamoCostInput, type DynamoCostOptions, dynamoCost, dynamoCostSettings, dynamoCredit } from "../cost.js";
import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest, preferenceFactor } from "./choose.js";
import { weightOption } from "./numbers.js";
import { drawByWeight } from "./random.js";

export interface DynamoOptions extends DynamoCostOptions {
  /** How far chance may depart from the lowest cost: at 0 never, at 1 the dearest worker is taken 1/e as often. Default 0. */
  readonly temperature?: number | undefined;
}

/**
 * Chooses the worker with the lowest cost by the formula of NVIDIA Dynamo's selection service: prefill to be done, less what
 * the cache spares, plus blocks in use. Equal costs are decided at random, or all by a temperature.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function dynamo(options: DynamoOptions = {}): Policy {
  const settings = dynamoCostSettings(options);
  const temperature = weightOption("temperature", options.temperature ?? 0);
  return {
    name: "dynamo",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      const leastPrefillTokens = leastOf(candidates);
      const input = (candidate: Candidate): DynamoCostInput => inputOf(candidate, request, leastPrefillTokens);
      const cost = (candidate: Candidate): number =>
        dynamoCost(input(candidate), settings) * preferenceFactor(candidate);
      const index =
        temperature === 0
          ? chooseLowest(candidates, cost, context)
          : chooseByTemperature(candidates.map(cost), temperature, context);
      if (context.explain !== true) return { index };
      const terms = candidates.map((candidate) => ({
        cost: cost(candidate),
        overlapBlocks: candidate.overlapBlocks,
        creditBlocks: dynamoCredit(input(candidate), settings),
        potentialBlocks: input(candidate).potentialBlocks,
        activePrefillTokens: candidate.load.activePrefillTokens,
        preferenceFactor: preferenceFactor(candidate),
      }));
      return { index, terms };
    },
  };
}

function leastOf(candidates: readonly Candidate[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { load } of candidates) least = Math.min(least, load.activePrefillTokens);
  return least;
}

function inputOf(candidate: Candidate, request: RoutingRequest, leastPrefillTokens: number): DynamoCostInput {
  const { load } = candidate;
  const requestBlocks = request.sequenceHashes.length;
  return {
    blockTokens: request.blockTokens,
    promptTokens: request.promptTokens,
    requestBlocks,
    activePrefillTokens: load.activePrefillTokens,
    leastPrefillTokens,
    deviceBlocks: candidate.overlapBlocks,
    potentialBlocks: load.activeBlocks + requestBlocks - candidate.activeOverlapBlocks,
    activeRequests: load.activeRequests,
    trackPrefill: true,
  };
}

/**
 * Draws a position, the cheaper the likelier: by a softmax over costs that are spread from 0 to 1.
 *
 * @param temperature above 0
 */
export function chooseByTemperature(costs: readonly number[], temperature: number, context: PolicyContext): number {
  const least = Math.min(...costs);
  const spread = Math.max(...costs) - least;
  const weights = costs.map((cost) => (spread === 0 ? 1 : Math.exp(-((cost - least) / spread) / temperature)));
  return drawByWeight(weights, context);
}
