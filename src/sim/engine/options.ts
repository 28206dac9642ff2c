import { OptionError } from "../../errors.js";
import { countOption } from "../../selection/policies/numbers.js";
import type { PassTiming } from "./timing.js";

export { countOption };

/** How an engine schedules: the arguments of vLLM of the same names. */
export interface SchedulerOptions {
  /** Blocks of the KV cache. Default 16,384. */
  readonly numGpuBlocks?: number | undefined;
  /** Tokens in a block, 1 to 4,096. Default 64. */
  readonly blockSize?: number | undefined;
  /** Requests that run at a time. Default 256. */
  readonly maxNumSeqs?: number | undefined;
  /** Tokens that a pass computes at most. Default 8,192. */
  readonly maxNumBatchedTokens?: number | undefined;
  /** Tokens of a prompt and its answer together. Default: what the KV cache holds. */
  readonly maxModelLen?: number | undefined;
  /** Whether blocks are kept for later requests. Default true. */
  readonly enablePrefixCaching?: boolean | undefined;
  /** Whether a prompt may be spread over several passes. Default true. */
  readonly enableChunkedPrefill?: boolean | undefined;
  /** Requests that wait at a time; vLLM has no such limit. Default 65,536. */
  readonly maxNumWaiting?: number | undefined;
}

export interface EngineOptions extends SchedulerOptions {
  /** How long a pass takes. Default `polynomialTiming()`. */
  readonly timing?: PassTiming | undefined;
  /** What the time of a pass is divided by, above 0; with `Infinity` passes take no time. Default 1. */
  readonly speedupRatio?: number | undefined;
  /** What the time of decoding is divided by besides. Default 1. */
  readonly decodeSpeedupRatio?: number | undefined;
  /** The data-parallel rank that the engine says it is in its events. Default 0. */
  readonly dpRank?: number | undefined;
  /** Gives the tokens of answers that a request does not give itself. Default `mixedToken`. */
  readonly nextToken?: ((seed: bigint, index: number) => number) | undefined;
}

/** Scheduler options with nothing left open. */
export interface Limits {
  readonly numGpuBlocks: number;
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  /** Tokens that a sequence may have: it fits into the cache, and into one pass where prompts may not be cut. */
  readonly maxModelLen: number;
  readonly enablePrefixCaching: boolean;
  readonly enableChunkedPrefill: boolean;
  readonly maxNumWaiting: number;
}

export const NUM_GPU_BLOCKS_DEFAULT = 16_384;
export const BLOCK_SIZE_DEFAULT = 64;
export const MAX_NUM_SEQS_DEFAULT = 256;
export const MAX_NUM_BATCHED_TOKENS_DEFAULT = 8_192;
export const MAX_NUM_WAITING_DEFAULT = 65_536;

const BLOCKS_MAX = 2 ** 24 - 1;
const BLOCK_SIZE_MAX = 4_096;
const COUNT_MAX = 2 ** 31 - 1;

/**
 * Checks the options, and fills in the defaults.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if one lies outside its range
 */
export function checkLimits(options: SchedulerOptions): Limits {
  const numGpuBlocks = countOption("numGpuBlocks", options.numGpuBlocks ?? NUM_GPU_BLOCKS_DEFAULT, 1, BLOCKS_MAX);
  const blockSize = countOption("blockSize", options.blockSize ?? BLOCK_SIZE_DEFAULT, 1, BLOCK_SIZE_MAX);
  const maxNumBatchedTokens = countOption(
    "maxNumBatchedTokens",
    options.maxNumBatchedTokens ?? MAX_NUM_BATCHED_TOKENS_DEFAULT,
    1,
    COUNT_MAX,
  );
  const wanted = countOption("maxModelLen", options.maxModelLen ?? COUNT_MAX, 1, COUNT_MAX);
  const enableChunkedPrefill = checkFlag("enableChunkedPrefill", options.enableChunkedPrefill ?? true);
  const inOnePass = enableChunkedPrefill ? COUNT_MAX : maxNumBatchedTokens;
  return {
    numGpuBlocks,
    blockSize,
    maxNumSeqs: countOption("maxNumSeqs", options.maxNumSeqs ?? MAX_NUM_SEQS_DEFAULT, 1, COUNT_MAX),
    maxNumBatchedTokens,
    maxModelLen: Math.min(wanted, numGpuBlocks * blockSize, inOnePass),
    enablePrefixCaching: checkFlag("enablePrefixCaching", options.enablePrefixCaching ?? true),
    enableChunkedPrefill,
    maxNumWaiting: countOption("maxNumWaiting", options.maxNumWaiting ?? MAX_NUM_WAITING_DEFAULT, 1, COUNT_MAX),
  };
}

/** Checks a ratio of speeds. */
export function checkRatio(name: string, ratio: number): number {
  if (typeof ratio === "number" && ratio > 0) return ratio;
  throw new OptionError(`Expected ${name} to be a number above 0, got ${String(ratio)}.`);
}

function checkFlag(name: string, value: boolean): boolean {
  if (typeof value === "boolean") return value;
  throw new OptionError(`Expected ${name} to be true or false, got ${String(value)}.`);
}
