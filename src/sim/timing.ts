import { OptionError, ReplayLimitError } from "../errors.js";
import { missedTokens } from "../selection/policies/kv.js";
import type { TraceRequest } from "./row.js";
import { type ReplayPool, serve } from "./worker.js";

/** How long things take. Tokens are characters where the trace counts those. */
export interface ReplayTiming {
  /** Tokens that a worker prefills in a second, above 0. Either this or `utilisation`. */
  readonly prefillRate?: number | undefined;
  /**
   * The part of the time, above 0, that workers would be busy if each took its turn. The prefill rate follows from it. To
   * find it the whole trace is read first, and held.
   */
  readonly utilisation?: number | undefined;
  /** How long an answer takes for each token, 0 or more. Four characters count as one. Default 25. */
  readonly decodeMsPerToken?: number | undefined;
  /** Whether a request waits until the one before it in its session has been answered. Default false. */
  readonly closedLoop?: boolean | undefined;
  /**
   * Whether the router holds requests until a worker has no unfinished prefill, and hands over those first that have least
   * to compute, less what they have gained by waiting. Default false.
   */
  readonly hold?: boolean | undefined;
  /** The size of the largest trace that `utilisation` holds. Default `HELD_BYTES_MAX_DEFAULT`. */
  readonly heldBytesMax?: number | undefined;
  /** Requests of one policy that may be under way or waiting at a time. Default `UNFINISHED_MAX_DEFAULT`. */
  readonly unfinishedMax?: number | undefined;
}

export const UTILISATION_MAX = 100;
export const PREFILL_RATE_MAX = 1e12;
export const DECODE_MS_PER_TOKEN_DEFAULT = 25;
export const DECODE_MS_PER_TOKEN_MAX = 1e6;
/** About a million requests of 24 blocks. */
export const HELD_BYTES_MAX_DEFAULT = 512 * 1024 * 1024;
export const UNFINISHED_MAX_DEFAULT = 1_000_000;

export const CHARACTERS_PER_TOKEN = 4;

/** Besides its hashes, in bytes. */
const HELD_BYTES_PER_REQUEST = 320;

/** @throws {OptionError} `KVROUTE_OPTION` if a number is out of its range, or if there are two rates or none */
export function checkTiming(timing: ReplayTiming): void {
  const { prefillRate, utilisation } = timing;
  if ((prefillRate === undefined) === (utilisation === undefined)) {
    throw new OptionError("Expected either prefillRate or utilisation, got both or none.");
  }
  requireNumber("prefillRate", prefillRate ?? 1, 0, PREFILL_RATE_MAX, true);
  requireNumber("utilisation", utilisation ?? 1, 0, UTILISATION_MAX, true);
  requireNumber("decodeMsPerToken", timing.decodeMsPerToken ?? 0, 0, DECODE_MS_PER_TOKEN_MAX);
  requireNumber("heldBytesMax", timing.heldBytesMax ?? 0, 0, Number.MAX_SAFE_INTEGER);
  requireNumber("unfinishedMax", timing.unfinishedMax ?? 1, 1, Number.MAX_SAFE_INTEGER);
}

function requireNumber(name: string, value: number, min: number, max: number, isAbove = false): void {
  if (value <= max && (isAbove ? value > min : value >= min)) return;
  const range = isAbove ? `above ${min} and at most ${max}` : `from ${min} to ${max}`;
  throw new OptionError(`Expected ${name} to be a number ${range}, got ${value}.`);
}

/**
 * Reads a whole trace into memory.
 *
 * @throws {ReplayLimitError} `KVROUTE_REPLAY_LIMIT` if it is too large
 */
export async function holdTrace(requests: AsyncIterable<TraceRequest>, heldBytesMax: number): Promise<TraceRequest[]> {
  const held: TraceRequest[] = [];
  let bytes = 0;
  for await (const request of requests) {
    bytes += request.sequenceHashes.byteLength + HELD_BYTES_PER_REQUEST;
    if (bytes > heldBytesMax) {
      const advice = "Give --prefill-rate instead of --utilisation: then the trace is not held.";
      throw new ReplayLimitError(`a trace of at most ${heldBytesMax} bytes in memory, got a longer one`, advice);
    }
    held.push(request);
  }
  return held;
}

/**
 * Finds the tokens that a worker must prefill in a second to be busy so much of the time when each takes its turn: the work
 * of a round robin over the span of the timestamps.
 *
 * @param pools the KV cache of each worker, empty; they are disposed of
 * @throws {OptionError} `KVROUTE_OPTION` if the timestamps span no time
 */
export function rateAt(utilisation: number, requests: readonly TraceRequest[], pools: readonly ReplayPool[]): number {
  const spanMs = spanOf(requests);
  if (!(spanMs > 0)) {
    throw new OptionError(`Expected a trace that spans some time for a utilisation, got ${spanMs} ms.`);
  }
  let tokens = 0;
  let turn = 0;
  for (const request of requests) {
    const hits = serve(pools[turn++ % pools.length] as ReplayPool, request.sequenceHashes);
    if (hits !== null) tokens += missedTokens(hits, request);
  }
  for (const pool of pools) pool.dispose();
  return tokens / ((spanMs / 1000) * pools.length * utilisation);
}

/** The time from the first timestamp to the last in milliseconds. */
function spanOf(requests: readonly TraceRequest[]): number {
  let firstMs = Number.POSITIVE_INFINITY;
  let lastMs = 0;
  for (const { timestampMs } of requests) {
    firstMs = Math.min(firstMs, timestampMs);
    lastMs = Math.max(lastMs, timestampMs);
  }
  return Math.max(0, lastMs - firstMs);
}
