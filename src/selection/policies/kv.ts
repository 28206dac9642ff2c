import { OptionError } from "../../errors.js";
import type { Candidate, Choice, Policy, PolicyContext, PolicyTerms, RoutingRequest } from "../policy.js";
import { explained, isSameWorker, preferenceFactor } from "./choose.js";
import { countOption, lowerMedian, weightOption } from "./numbers.js";

/** Names for how much prefill is worth: the first waits least, the last computes least. */
export type KvPreset = "latency-first" | "balanced" | "cache-first";

export interface KvOptions {
  /** Sets `baseTax`. Default `"balanced"`. */
  readonly preset?: KvPreset | undefined;
  /** The tax on a token that another worker would have spared, while the typical worker has no queue. Default 2. */
  readonly baseTax?: number | undefined;
  /** What each unfinished prefill on the typical worker adds to the tax. Default 2. */
  readonly queueTax?: number | undefined;
  /** How many unfinished prefills make the blocks that they share free of tax. Default 8. */
  readonly hotRequests?: number | undefined;
  /** How near to the best a cost is equal to it, as a part of the average tokens that a request has computed. Default 0.2. */
  readonly nearTie?: number | undefined;
  /**
   * Whether costs are corrected by the speed that was learnt of each worker. Turn it off where several routers send to the
   * same workers and share no load: what each learns is wrong then. Default true.
   */
  readonly learnSpeed?: boolean | undefined;
}

export const BASE_TAX: Readonly<Record<KvPreset, number>> = { "latency-first": 0, balanced: 2, "cache-first": 7 };
export const QUEUE_TAX_DEFAULT = 2;
export const HOT_REQUESTS_DEFAULT = 8;
export const NEAR_TIE_DEFAULT = 0.2;

const HOT_REQUESTS_MAX = 1_000_000;
/** Speeds within this factor of the typical one count as equal. */
const SPEED_BAND = 1.5;
/** Prefills that must have ended before a speed is believed. */
const SPEED_SAMPLES_MIN = 10;
const SLOWEST = 8;
const FASTEST = 1 / 4;

/**
 * Chooses the worker where the first token comes soonest, and charges for waste: each token of prefill that another choice
 * would have spared is taxed, since everybody who queues behind waits for it as well. The tax grows with the queue of the
 * typical worker; blocks that many waiting requests share are free of it, so that a second copy of them is used at once.
 * Among workers of nearly equal cost it takes the session's last one, else the one
 * that was given least lately, and exact ties at random.
 *
 *     cost = slow * (wait + miss) + tax * (miss - free)        in tokens
 *
 * With idle peers nobody waits longer than three times the prefill that waiting spares, by the router's own estimate, plus
 * the margin of near ties.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function kv(options: KvOptions = {}): Policy {
  return new KvPolicy(options);
}

class KvPolicy implements Policy {
  readonly name: string;
  readonly hotRequests: number;
  readonly #baseTax: number;
  readonly #queueTax: number;
  readonly #nearTie: number;
  readonly #learnSpeed: boolean;
  #costs = new Float64Array(16);
  #sorted = new Float64Array(16);

  constructor(options: KvOptions) {
    const preset = options.preset ?? "balanced";
    if (!Object.hasOwn(BASE_TAX, preset)) {
      throw new OptionError(`Expected preset to be one of ${Object.keys(BASE_TAX).join(", ")}, got ${preset}.`);
    }
    this.name = preset === "balanced" ? "kv" : preset;
    this.#baseTax = weightOption("baseTax", options.baseTax ?? BASE_TAX[preset]);
    this.#queueTax = weightOption("queueTax", options.queueTax ?? QUEUE_TAX_DEFAULT);
    this.#nearTie = weightOption("nearTie", options.nearTie ?? NEAR_TIE_DEFAULT);
    this.hotRequests = countOption("hotRequests", options.hotRequests ?? HOT_REQUESTS_DEFAULT, 1, HOT_REQUESTS_MAX);
    this.#learnSpeed = options.learnSpeed ?? true;
  }

  choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
    const count = candidates.length;
    if (count > this.#costs.length) {
      this.#costs = new Float64Array(2 * count);
      this.#sorted = new Float64Array(2 * count);
    }
    const tax = this.#baseTax + this.#queueTax * this.#typicalQueue(candidates);
    const typical = this.#learnSpeed ? this.#typicalSpeed(candidates) : 0;
    const costs = this.#costs;
    let best = Number.POSITIVE_INFINITY;
    for (let index = 0; index < count; index++) {
      const cost = costOf(candidates[index] as Candidate, request, context, tax, typical);
      costs[index] = cost;
      if (cost < best) best = cost;
    }
    const nearTieTokens = this.#nearTie * context.averageMissedTokens;
    const limit = best + nearTieTokens;
    const home = homeWithin(candidates, request, costs, limit);
    const index = home >= 0 ? home : leastRecent(candidates, costs, limit, context);
    return explained(index, candidates, context, (candidate) => ({
      ...termsOf(candidate, request, context, tax, typical),
      nearTieTokens,
    }));
  }

  /** The lower median of the queues. A median, as one overloaded worker must not raise the tax that keeps its clients. */
  #typicalQueue(candidates: readonly Candidate[]): number {
    const sorted = this.#sorted;
    let count = 0;
    for (const candidate of candidates) sorted[count++] = candidate.load.activePrefills;
    return lowerMedian(sorted, count);
  }

  /** The lower median of the speeds, per unit of weight, that rest on enough prefills; 0 where no correction is due. */
  #typicalSpeed(candidates: readonly Candidate[]): number {
    const sorted = this.#sorted;
    let count = 0;
    let slowest = Number.POSITIVE_INFINITY;
    let fastest = 0;
    for (const candidate of candidates) {
      const speed = speedOf(candidate);
      if (speed === 0) continue;
      sorted[count++] = speed;
      if (speed < slowest) slowest = speed;
      if (speed > fastest) fastest = speed;
    }
    return fastest <= SPEED_BAND * slowest ? 0 : lowerMedian(sorted, count);
  }
}

/** The speed of a worker per unit of its weight, 0 while it is not known well. */
function speedOf({ load, weight }: Candidate): number {
  return load.endedPrefills < SPEED_SAMPLES_MIN ? 0 : load.tokensPerMs / weight;
}

/** How much slower than the typical worker this one is, beyond what its weight says. */
function slownessOf(candidate: Candidate, typical: number): number {
  const speed = typical === 0 ? 0 : speedOf(candidate);
  if (speed === 0 || (speed <= SPEED_BAND * typical && typical <= SPEED_BAND * speed)) return 1;
  return Math.min(Math.max(typical / speed, FASTEST), SLOWEST);
}

/** Tokens of prefill before the request has its turn, less what the running one is believed to have done. */
function waitOf({ load }: Candidate, nowMs: number): number {
  const done = load.tokensPerMs * Math.max(0, nowMs - load.headSinceMs);
  return load.activePrefillTokens - Math.min(load.headTokens, done);
}

/** Tokens of the prompt that a worker has to compute: the last one at least. */
export function missedTokens(overlapBlocks: number, request: RoutingRequest): number {
  return Math.max(1, request.promptTokens - overlapBlocks * request.blockTokens);
}

/** Those of the missed tokens that lie in hot blocks. */
function freeTokens(overlapBlocks: number, miss: number, request: RoutingRequest, hotBlocks: number): number {
  return Math.min(miss, Math.max(0, hotBlocks - overlapBlocks) * request.blockTokens);
}

function costOf(
  candidate: Candidate,
  request: RoutingRequest,
  context: PolicyContext,
  tax: number,
  typical: number,
): number {
  const overlap = candidate.overlapBlocks;
  const miss = missedTokens(overlap, request);
  const free = freeTokens(overlap, miss, request, context.hotBlocks);
  const delay = (slownessOf(candidate, typical) / candidate.weight) * (waitOf(candidate, context.nowMs) + miss);
  return (delay + tax * (miss - free)) * preferenceFactor(candidate);
}

function termsOf(
  candidate: Candidate,
  request: RoutingRequest,
  context: PolicyContext,
  tax: number,
  typical: number,
): PolicyTerms {
  const overlap = candidate.overlapBlocks;
  const miss = missedTokens(overlap, request);
  return {
    cost: costOf(candidate, request, context, tax, typical),
    overlapBlocks: overlap,
    missedTokens: miss,
    waitTokens: waitOf(candidate, context.nowMs),
    freeTokens: freeTokens(overlap, miss, request, context.hotBlocks),
    tax,
    slowness: slownessOf(candidate, typical) / candidate.weight,
    preferenceFactor: preferenceFactor(candidate),
    recentTokens: candidate.load.recentTokens,
  };
}

/** Finds the worker that served the session last, if its cost is at most `limit`; else -1. */
function homeWithin(
  candidates: readonly Candidate[],
  { home }: RoutingRequest,
  costs: Float64Array,
  limit: number,
): number {
  if (home === undefined) return -1;
  const index = candidates.findIndex(({ worker }) => isSameWorker(worker, home));
  return index >= 0 && (costs[index] as number) <= limit ? index : -1;
}

/** Finds, among the candidates whose cost is at most `limit`, the one that was given least lately for its weight. */
function leastRecent(
  candidates: readonly Candidate[],
  costs: Float64Array,
  limit: number,
  context: PolicyContext,
): number {
  let chosen = 0;
  let least = Number.POSITIVE_INFINITY;
  let equals = 0;
  for (let index = 0; index < candidates.length; index++) {
    if ((costs[index] as number) > limit) continue;
    const { load, weight } = candidates[index] as Candidate;
    const recent = load.recentTokens / weight;
    if (recent < least) {
      least = recent;
      chosen = index;
      equals = 1;
    } else if (recent === least) {
      equals++;
      if (context.random() * equals < 1) chosen = index; // the n-th equal replaces the others once in n
    }
  }
  return chosen;
}
