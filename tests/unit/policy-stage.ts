import { expect } from "vitest";
import type { WorkerId, WorkerWithDpRank } from "../../src/core/keys.js";
import type { Candidate, CandidateLoad, Policy, PolicyContext, RoutingRequest } from "../../src/selection/policy.js";
import { Prng } from "../../src/sim/prng.js";

// What tests of policies are played on: candidates, requests and contexts that are idle, cold and equal but for what a test
// says of them.

export const BLOCK_TOKENS = 512;

const IDLE: CandidateLoad = {
  missedBlocks: 0,
  activeRequests: 0,
  activeBlocks: 0,
  activePrefills: 0,
  activePrefillTokens: 0,
  headTokens: 0,
  headSinceMs: 0,
  tokensPerMs: 0,
  endedPrefills: 0,
  recentTokens: 0,
};

/** What a test says of a candidate. */
export interface Figures extends Partial<CandidateLoad> {
  readonly id?: WorkerId;
  readonly dpRank?: number;
  readonly overlapBlocks?: number;
  readonly activeOverlapBlocks?: number;
  readonly weight?: number;
  readonly preference?: number;
}

export function candidate(figures: Figures = {}): Candidate {
  const { id = 0, dpRank = 0, overlapBlocks = 0, activeOverlapBlocks = 0, weight = 1, preference = 0 } = figures;
  const load = { ...IDLE };
  for (const name of Object.keys(IDLE) as (keyof CandidateLoad)[]) load[name] = figures[name] ?? IDLE[name];
  return { worker: { workerId: id, dpRank }, overlapBlocks, activeOverlapBlocks, weight, preference, load };
}

/** Candidates that are named by their places. */
export function fleet(workers: number, figures: Figures = {}): Candidate[] {
  return Array.from({ length: workers }, (_, id) => candidate({ ...figures, id }));
}

export function request(...hashes: readonly (bigint | number)[]): RoutingRequest {
  return {
    sequenceHashes: BigUint64Array.from(hashes, BigInt),
    promptTokens: hashes.length * BLOCK_TOKENS,
    blockTokens: BLOCK_TOKENS,
  };
}

/** A request of so many blocks that nothing else has. */
export function prompt(blocks: number, extra: Partial<RoutingRequest> = {}): RoutingRequest {
  return { ...request(...Array.from({ length: blocks }, (_, at) => at + 1)), ...extra };
}

export function seeded(seed = 1, extra: Partial<PolicyContext> = {}): PolicyContext {
  const chance = new Prng(seed);
  return { ...noChance, random: () => chance.random(), ...extra };
}

/** The context of choices that are certain. */
export const noChance: PolicyContext = {
  nowMs: 0,
  hotBlocks: 0,
  averageMissedTokens: 0,
  random: () => {
    throw new Error("this choice needs no chance");
  },
};

/** Who is chosen, by name. */
export function chosen(
  policy: Policy,
  candidates: readonly Candidate[],
  of: RoutingRequest = request(1),
  context: PolicyContext = noChance,
): WorkerWithDpRank {
  return (candidates[policy.choose(candidates, of, context).index] as Candidate).worker;
}

/** Counts how often each candidate is chosen. */
export function countChoices(
  policy: Policy,
  candidates: readonly Candidate[],
  times: number,
  of: RoutingRequest = request(1),
  context: PolicyContext = seeded(),
): number[] {
  const counts = candidates.map(() => 0);
  for (let time = 0; time < times; time++) {
    const { index } = policy.choose(candidates, of, context);
    counts[index] = (counts[index] as number) + 1;
  }
  return counts;
}

export function expectEven(counts: readonly number[], within: number): void {
  const mean = counts.reduce((total, count) => total + count, 0) / counts.length;
  for (const count of counts) expect(Math.abs(count / mean - 1)).toBeLessThan(within);
}
