import type { WorkerWithDpRank } from "../../core/keys.js";
import { OptionError } from "../../errors.js";
import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { chooseLowest } from "./choose.js";
import { chooseAtRandom } from "./random.js";

export interface PrefixHashOptions {
  /** How many leading blocks of a prompt name its worker, 1 to `PREFIX_BLOCKS_MAX`. Default 2. */
  readonly prefixBlocks?: number | undefined;
}

export const PREFIX_BLOCKS_DEFAULT = 2;
export const PREFIX_BLOCKS_MAX = 65_536;

/**
 * Chooses a worker by the hash of the first blocks of the prompt alone, and keeps no state.
 *
 * Hashing is by rendezvous: every worker is given a score for the key, the highest wins. When a worker goes, only
 * its own prompts move; when one comes, prompts move to it alone.
 *
 * A prompt shorter than `prefixBlocks` is hashed with what it has. A prompt without a full block has nothing that a
 * cache could give it, so that any worker is as good as another: it goes to a random one. A constant key would
 * send all such prompts to one worker.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if `prefixBlocks` is not a whole number in its range
 */
export function prefixHash(options: PrefixHashOptions = {}): Policy {
  const prefixBlocks = options.prefixBlocks ?? PREFIX_BLOCKS_DEFAULT;
  if (!Number.isInteger(prefixBlocks) || prefixBlocks < 1 || prefixBlocks > PREFIX_BLOCKS_MAX) {
    throw new OptionError(
      `Expected prefixBlocks to be a whole number from 1 to ${PREFIX_BLOCKS_MAX}, got ${prefixBlocks}.`,
    );
  }
  const seeds = new WeakMap<WorkerWithDpRank, number>(); // spares hashing the same id again, decides nothing
  const seedOf = (worker: WorkerWithDpRank): number => {
    const known = seeds.get(worker);
    if (known !== undefined) return known;
    const seed = hashWorker(worker);
    seeds.set(worker, seed);
    return seed;
  };
  return {
    name: "prefix-hash",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      if (request.sequenceHashes.length === 0) return chooseAtRandom(candidates, request, context);
      const key = hashPrefix(request.sequenceHashes, prefixBlocks);
      return { index: chooseLowest(candidates, (candidate) => -scoreOf(key, seedOf(candidate.worker)), context) };
    },
  };
}

interface Key {
  readonly high: number;
  readonly low: number;
}

/** Hashes the first `blocks` hashes of a prompt, or all of them if there are fewer, to 64 bits. */
function hashPrefix(hashes: BigUint64Array, blocks: number): Key {
  let high = 0;
  let low = 0;
  for (const hash of hashes.subarray(0, blocks)) {
    low = mix(low ^ Number(hash & 0xffff_ffffn));
    high = mix(high ^ low ^ Number(hash >> 32n));
  }
  return { high, low };
}

/** Gives a worker its score for a key, from 0 to 2^53 - 1. */
function scoreOf(key: Key, seed: number): number {
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
