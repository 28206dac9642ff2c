import { type WorkerKey, workerKey } from "../../core/worker-key.js";
import type { Candidate, Choice, Policy } from "../policy.js";
import { haveEqualWeights } from "./rendezvous.js";

/**
 * Chooses the workers in turn, in the order of the list of candidates. Where weights differ, a worker of weight 2 has two
 * turns where one of weight 1 has one, and its turns are spread among those of the others.
 */
export function roundRobin(): Policy {
  const turns = new WeightedTurns();
  let next = 0;
  return {
    name: "round-robin",
    choose(candidates: readonly Candidate[]): Choice {
      if (!haveEqualWeights(candidates)) return { index: turns.take(candidates) };
      const index = next % candidates.length; // the list may have become shorter
      next = index + 1;
      return { index };
    },
  };
}

/** Turns by weight: at each, every worker earns its weight, and the one that has earned most pays for all. */
class WeightedTurns {
  /** What each worker of the last list has earned and not spent. */
  #earned = new Map<WorkerKey, Map<number, number>>();

  take(candidates: readonly Candidate[]): number {
    const earned = new Map<WorkerKey, Map<number, number>>(); // who is not in the list any more is forgotten
    let total = 0;
    let most = Number.NEGATIVE_INFINITY;
    let chosen = 0;
    for (const [index, { worker, weight }] of candidates.entries()) {
      const key = workerKey(worker.workerId);
      const now = (this.#earned.get(key)?.get(worker.dpRank) ?? 0) + weight;
      put(earned, key, worker.dpRank, now);
      total += weight;
      if (now <= most) continue;
      most = now;
      chosen = index;
    }
    const { worker } = candidates[chosen] as Candidate;
    put(earned, workerKey(worker.workerId), worker.dpRank, most - total);
    this.#earned = earned;
    return chosen;
  }
}

function put(earned: Map<WorkerKey, Map<number, number>>, key: WorkerKey, dpRank: number, amount: number): void {
  const ranks = earned.get(key);
  if (ranks === undefined) earned.set(key, new Map([[dpRank, amount]]));
  else ranks.set(dpRank, amount);
}
