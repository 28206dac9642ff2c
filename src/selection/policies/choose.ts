import type { WorkerWithDpRank } from "../../core/keys.js";
import { workerKey } from "../../core/worker-key.js";
import type { Candidate, Choice, PolicyContext, PolicyTerms } from "../policy.js";

/**
 * Finds the candidate with the lowest score, each of several equal ones with the same probability.
 * Chance is asked for only when there is a tie. Who has an infinite score is not wanted.
 *
 * @param candidates one or more
 * @returns its position in the list
 */
export function chooseLowest(
  candidates: readonly Candidate[],
  score: (candidate: Candidate) => number,
  context: PolicyContext,
): number {
  let index = 0;
  let chosen = 0;
  let lowest = Number.POSITIVE_INFINITY;
  let equals = 0;
  for (const candidate of candidates) {
    const current = score(candidate);
    if (current < lowest) {
      lowest = current;
      chosen = index;
      equals = 1;
    } else if (current === lowest && current < Number.POSITIVE_INFINITY) {
      equals++;
      if (context.random() * equals < 1) chosen = index; // the n-th equal replaces the others once in n
    }
    index++;
  }
  return chosen;
}

/** Makes a choice, with the terms of each candidate where the context asks for them. */
export function explained(
  index: number,
  candidates: readonly Candidate[],
  context: PolicyContext,
  termsOf: (candidate: Candidate, index: number) => PolicyTerms,
): Choice {
  return context.explain === true ? { index, terms: candidates.map(termsOf) } : { index };
}

/**
 * What a cost is multiplied by for the preferred taints of a worker: from 1/e where it has many to e where they are to be
 * avoided, 1 for none. The rule is that of NVIDIA Dynamo's selection service.
 */
export function preferenceFactor({ preference }: Candidate): number {
  return preference === 0 ? 1 : Math.exp(-Math.tanh(preference));
}

/** Tells whether two name the same scheduler: 1 and 1n are one worker, "1" is another. */
export function isSameWorker(a: WorkerWithDpRank, b: WorkerWithDpRank): boolean {
  return a.dpRank === b.dpRank && workerKey(a.workerId) === workerKey(b.workerId);
}
