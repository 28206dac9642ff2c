import type { WorkerWithDpRank } from "../../core/keys.js";
import type { Candidate, PolicyContext } from "../policy.js";
import { chooseLowest } from "./choose.js";

// Rendezvous hashing: every worker is given a score for a key, and the highest wins. When a worker goes, only its own keys
// move; when one comes, keys move to it alone.

/** 64 bits that a worker is chosen by. */
export interface RendezvousKey {
  readonly high: number;
  readonly low: number;
}

/** Makes a key of hashes, in their order. */
export function keyOfHashes(hashes: BigUint64Array): RendezvousKey {
  let high = 0;
  let low = 0;
  for (const hash of hashes) {
    low = mix(low ^ Number(hash & 0xffff_ffffn));
    high = mix(high ^ low ^ Number(hash >> 32n));
  }
  return { high, low };
}

/** Makes a key of a text. */
export function keyOfText(text: string): RendezvousKey {
  let high = 0;
  let low = 0;
  for (let at = 0; at < text.length; at++) {
    low = mix(low ^ text.charCodeAt(at));
    high = mix(high ^ low);
  }
  return { high, low };
}

/** Scores workers for keys. */
export class Rendezvous {
  readonly #seeds = new WeakMap<WorkerWithDpRank, number>(); // spares hashing the same id again, decides nothing

  /**
   * Chooses a worker for a key. Each has a share of the keys as large as its weight among the weights, and where a weight
   * changes, keys move to or from that worker alone.
   */
  choose(candidates: readonly Candidate[], key: RendezvousKey, context: PolicyContext): number {
    const costs = this.costs(candidates, key);
    let at = 0;
    return chooseLowest(candidates, () => costs[at++] as number, context);
  }

  /** What `choose` finds the lowest of, for each candidate. */
  costs(candidates: readonly Candidate[], key: RendezvousKey): number[] {
    const scores = candidates.map(({ worker }) => scoreOf(key, this.#seedOf(worker)));
    if (haveEqualWeights(candidates)) return scores.map((score) => -score);
    // An exponential wait at the rate of the weight: the first to come wins, by the weights' proportions.
    return scores.map((score, at) => -Math.log((score + 0.5) / SCORES) / (candidates[at] as Candidate).weight);
  }

  #seedOf(worker: WorkerWithDpRank): number {
    const known = this.#seeds.get(worker);
    if (known !== undefined) return known;
    const seed = hashWorker(worker);
    this.#seeds.set(worker, seed);
    return seed;
  }
}

/** Tells whether all can do as much, so that weights need not be looked at. */
export function haveEqualWeights(candidates: readonly Candidate[]): boolean {
  return candidates.every(({ weight }) => weight === candidates[0]?.weight);
}

const SCORES = 2 ** 53;

/** Gives a worker its score for a key, from 0 to 2^53 - 1. */
function scoreOf(key: RendezvousKey, seed: number): number {
  const high = mix(key.high ^ seed);
  const low = mix(key.low ^ high);
  return (high >>> 0) * 0x20_0000 + (low >>> 11);
}

/** Hashes the name of a worker to 32 bits. `1` and `1n` are one worker, `"1"` is another. */
function hashWorker({ workerId, dpRank }: WorkerWithDpRank): number {
  const name = `${typeof workerId === "string" ? "s" : "n"}${workerId}`;
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = mix(hash ^ name.charCodeAt(at));
  return mix(hash ^ dpRank);
}

/** Spreads every bit of a 32-bit number over all of them: a step of the golden ratio, then the finalizer of MurmurHash3. */
function mix(value: number): number {
  let bits = (value + 0x9e37_79b9) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35);
  return bits ^ (bits >>> 16);
}
