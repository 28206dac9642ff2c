import { OptionError } from "../../errors.js";

/** What an engine computes in a pass. */
export interface PassLoad {
  /** Requests whose prompts the pass works on. */
  readonly prefillRequests: number;
  /** Tokens of prompts that it computes. */
  readonly prefillTokens: number;
  /** Tokens of the same prompts that were there before: cached, or computed by passes before. */
  readonly prefixTokens: number;
  /** Requests that get a further token of their answer. */
  readonly decodeRequests: number;
  /** Tokens that these requests have, on average. */
  readonly decodeContextTokens: number;
  /** Tokens that the blocks in use hold. */
  readonly activeKvTokens: number;
  /** Tokens that all blocks hold. */
  readonly totalKvTokens: number;
}

/** How long the two parts of a pass take, in milliseconds. */
export interface PassTime {
  readonly prefillMs: number;
  readonly decodeMs: number;
}

/** Says how long a pass takes: prefill and decoding one after the other. */
export type PassTiming = (load: PassLoad) => PassTime;

/** What `tableTiming` reads: measured times, under the names that the profiles of Dynamo's planner have. */
export interface TimingTable {
  /** Tokens that were prefilled, rising, two or more. */
  readonly prefill_isl: readonly number[];
  /** How long that took, in milliseconds. */
  readonly prefill_ttft_ms: readonly number[];
  /** Tokens in use of the cache, rising. */
  readonly decode_active_kv_tokens: readonly number[];
  /** Tokens of a request, rising. */
  readonly decode_context_length: readonly number[];
  /** How long a token took: a row for each number of tokens in use, a column for each length. */
  readonly decode_itl: readonly (readonly number[])[];
}

/**
 * Gives the polynomials that Dynamo's mocker was fitted with: prefill by its tokens, decoding by the part of the cache
 * that is in use.
 */
export function polynomialTiming(): PassTiming {
  return ({ prefillTokens, decodeRequests, activeKvTokens, totalKvTokens }) => {
    const t = prefillTokens;
    const p = activeKvTokens / totalKvTokens;
    return {
      prefillMs: t === 0 ? 0 : 4.209989e-7 * t * t + 1.518344e-2 * t + 16.50142,
      decodeMs: decodeRequests === 0 ? 0 : Math.max(1, -25.74 * p * p + 54.01 * p + 5.74),
    };
  };
}

/**
 * Reads times off a table: between its points along straight lines, beyond them on for prefill, and at the border for
 * decoding. No time is below 0.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if the table has another form
 */
export function tableTiming(table: TimingTable): PassTiming {
  const isl = checkAxis("prefill_isl", table?.prefill_isl, 2);
  const ttft = checkTimes("prefill_ttft_ms", table.prefill_ttft_ms, isl.length);
  const active = checkAxis("decode_active_kv_tokens", table.decode_active_kv_tokens, 1);
  const lengths = checkAxis("decode_context_length", table.decode_context_length, 1);
  const rows = table.decode_itl;
  if (!Array.isArray(rows) || rows.length !== active.length) {
    throw new OptionError(`Expected decode_itl to have ${active.length} rows, got ${rows?.length ?? "none"}.`);
  }
  const itl = rows.map((row, at) => checkTimes(`decode_itl[${at}]`, row, lengths.length));
  return (load) => ({
    prefillMs: load.prefillTokens === 0 ? 0 : Math.max(0, along(isl, ttft, load.prefillTokens)),
    decodeMs: load.decodeRequests === 0 ? 0 : across(active, lengths, itl, load),
  });
}

function across(
  active: readonly number[],
  lengths: readonly number[],
  itl: readonly (readonly number[])[],
  load: PassLoad,
): number {
  const length = clamp(load.decodeContextTokens, lengths);
  const column = itl.map((row) => along(lengths, row, length));
  return along(active, column, clamp(load.activeKvTokens, active));
}

function clamp(value: number, axis: readonly number[]): number {
  return Math.min(Math.max(value, axis[0] as number), axis.at(-1) as number);
}

/** Reads a value off a line through points, which goes on straight at both ends. */
function along(xs: readonly number[], ys: readonly number[], x: number): number {
  if (xs.length === 1) return ys[0] as number;
  let right = 1;
  while (right < xs.length - 1 && (xs[right] as number) < x) right++;
  const [x0, x1] = [xs[right - 1] as number, xs[right] as number];
  const [y0, y1] = [ys[right - 1] as number, ys[right] as number];
  return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
}

function checkAxis(name: string, axis: unknown, least: number): readonly number[] {
  const isRising =
    Array.isArray(axis) && axis.every((x, at) => Number.isFinite(x) && x >= 0 && (at === 0 || x > axis[at - 1]));
  if (isRising && axis.length >= least) return [...axis];
  throw new OptionError(`Expected ${name} to be ${least} or more rising numbers, got ${JSON.stringify(axis)}.`);
}

function checkTimes(name: string, times: unknown, count: number): readonly number[] {
  const isGood = Array.isArray(times) && times.every((ms) => Number.isFinite(ms) && ms >= 0);
  if (isGood && times.length === count) return [...times];
  throw new OptionError(`Expected ${name} to be ${count} numbers of milliseconds, got ${JSON.stringify(times)}.`);
}
