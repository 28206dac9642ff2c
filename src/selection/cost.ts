import { weightOption } from "./policies/numbers.js";

// The cost function of NVIDIA Dynamo's selection service, so that its choices can be compared with others on one's own
// traffic. All figures are in blocks but for tokens, which say so.

export interface DynamoCostOptions {
  /** What a block in the worker's device cache saves, in blocks of prefill. Default 1. */
  readonly overlapScoreCredit?: number | undefined;
  /** How fast that credit falls with the worker's backlog; at 1 one request's worth of blocks halves it. Default 0. */
  readonly overlapScoreCreditDecay?: number | undefined;
  /** What a block of prefill costs beside one of decode. Default 1. */
  readonly prefillLoadScale?: number | undefined;
  /** What each active request costs besides its blocks. Default 0. */
  readonly decodeActiveRequestWeight?: number | undefined;
  /** What a block in the worker's host memory saves. Default 0.75. */
  readonly hostCacheHitWeight?: number | undefined;
  /** What a block on the worker's disk saves. Default 0.25. */
  readonly diskCacheHitWeight?: number | undefined;
  /** What a block saves that only a cache shared by all workers holds. Default 0. */
  readonly sharedCacheMultiplier?: number | undefined;
}

export type DynamoCostSettings = { readonly [name in keyof DynamoCostOptions]-?: number };

export const DYNAMO_COST_DEFAULTS: DynamoCostSettings = {
  overlapScoreCredit: 1,
  overlapScoreCreditDecay: 0,
  prefillLoadScale: 1,
  decodeActiveRequestWeight: 0,
  hostCacheHitWeight: 0.75,
  diskCacheHitWeight: 0.25,
  sharedCacheMultiplier: 0,
};

/** What the cost of a worker for a request is made of. */
export interface DynamoCostInput {
  readonly blockTokens: number;
  readonly promptTokens: number;
  /** Blocks of the request: what a backlog is measured by. */
  readonly requestBlocks: number;
  /** Tokens of prefill booked on the worker, and the least of all eligible workers. */
  readonly activePrefillTokens: number;
  readonly leastPrefillTokens: number;
  /** Leading blocks in the worker's device cache, and those that each further tier adds. */
  readonly deviceBlocks: number;
  readonly hostBlocks?: number | undefined;
  readonly diskBlocks?: number | undefined;
  readonly sharedBlocks?: number | undefined;
  /** Blocks in use on the worker if it took the request. */
  readonly potentialBlocks: number;
  readonly activeRequests: number;
  /** Whether prefill counts as load; it does not on a worker that only decodes. */
  readonly trackPrefill: boolean;
  /** Whether the worker only decodes. */
  readonly isDecode?: boolean | undefined;
}

/** Fills in the defaults and checks the range of every option. */
export function dynamoCostSettings(options: DynamoCostOptions): DynamoCostSettings {
  const settings: Record<string, number> = { ...DYNAMO_COST_DEFAULTS };
  for (const name of Object.keys(DYNAMO_COST_DEFAULTS) as (keyof DynamoCostOptions)[]) {
    const value = options[name];
    if (value !== undefined) settings[name] = weightOption(name, value);
  }
  return settings as DynamoCostSettings;
}

/** Counts the blocks of prefill that the caches of a worker spare, each tier by its weight. */
export function dynamoCredit(input: DynamoCostInput, settings: DynamoCostSettings): number {
  const { hostBlocks = 0, diskBlocks = 0, sharedBlocks = 0 } = input;
  return (
    settings.overlapScoreCredit * creditDecay(input, settings) * input.deviceBlocks +
    settings.hostCacheHitWeight * hostBlocks +
    settings.diskCacheHitWeight * diskBlocks +
    settings.sharedCacheMultiplier * sharedBlocks
  );
}

/** The part of the device credit that a worker's backlog leaves, 0 to 1. */
function creditDecay(input: DynamoCostInput, { overlapScoreCreditDecay }: DynamoCostSettings): number {
  if (!input.trackPrefill || overlapScoreCreditDecay === 0) return 1;
  const excess = (input.activePrefillTokens - input.leastPrefillTokens) / input.blockTokens;
  return 1 / (1 + (overlapScoreCreditDecay * excess) / Math.max(1, input.requestBlocks));
}

/** The cost of a worker for a request, in blocks; the lowest is wanted. Preferred taints come on top. */
export function dynamoCost(input: DynamoCostInput, settings: DynamoCostSettings): number {
  const credit = dynamoCredit(input, settings);
  const requests = settings.decodeActiveRequestWeight * input.activeRequests;
  if (input.isDecode === true && !input.trackPrefill && credit > 0) {
    return Math.max(0, input.potentialBlocks - credit) + requests;
  }
  const prefill = input.trackPrefill ? (input.activePrefillTokens + input.promptTokens) / input.blockTokens : 0;
  return settings.prefillLoadScale * Math.max(0, prefill - credit) + input.potentialBlocks + requests;
}
