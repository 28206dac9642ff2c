import type { Candidate, Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { explained } from "./choose.js";
import { countOption } from "./numbers.js";
import { chooseAtRandom } from "./random.js";
import { keyOfHashes, keyOfText, Rendezvous, type RendezvousKey } from "./rendezvous.js";
import {
  FAN_OUT_DEFAULT,
  FAN_OUT_MAX,
  LEARNT_BLOCKS_DEFAULT,
  LEARNT_BLOCKS_MAX,
  SharedPrefix,
} from "./shared-prefix.js";

export interface PrefixHashOptions {
  /**
   * How many leading blocks of a prompt name its worker, 1 to `PREFIX_BLOCKS_MAX`; or `"learnt"`: the first block after the
   * prefix that prompts share, which is learnt from them. Default 2.
   */
  readonly prefixBlocks?: number | "learnt" | undefined;
  /** When learnt: a block with so many different blocks after it belongs to the shared prefix, 2 to 64. Default 4. */
  readonly fanOut?: number | undefined;
  /** When learnt: how many blocks are remembered, 1 to 16,777,215. Default 16,384. */
  readonly maxLearntBlocks?: number | undefined;
}

export const PREFIX_BLOCKS_DEFAULT = 2;
export const PREFIX_BLOCKS_MAX = 65_536;

/**
 * Chooses a worker by a hash alone, and knows nothing of loads and caches: of the session, if the request names one; else of
 * its affinity key; else of the first blocks of the prompt. What is hashed alike goes to the same worker from every router,
 * without a word between them (but for what each has learnt). Workers have shares of the keys by their weights.
 *
 * A prompt shorter than `prefixBlocks` is hashed with what it has. A prompt without a full block has nothing that a
 * cache could give it, so that any worker is as good as another: it goes to a random one. A constant key would
 * send all such prompts to one worker.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export function prefixHash(options: PrefixHashOptions = {}): Policy {
  const keyOfBlocks = blockKeys(options);
  const rendezvous = new Rendezvous();
  const keyOf = ({ session, affinityKey, sequenceHashes }: RoutingRequest): RendezvousKey | undefined => {
    if (session !== undefined) return keyOfText(`session ${session}`);
    if (affinityKey !== undefined) return keyOfText(`key ${affinityKey}`);
    return sequenceHashes.length === 0 ? undefined : keyOfBlocks(sequenceHashes);
  };
  return {
    name: "prefix-hash",
    choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice {
      const key = keyOf(request);
      if (key === undefined) return chooseAtRandom(candidates, request, context);
      const index = rendezvous.choose(candidates, key, context);
      if (context.explain !== true) return { index };
      const costs = rendezvous.costs(candidates, key);
      return explained(index, candidates, context, (_, at) => ({ cost: costs[at] as number }));
    },
  };
}

/** Settles what of a prompt's blocks is hashed. */
function blockKeys(options: PrefixHashOptions): (hashes: BigUint64Array) => RendezvousKey {
  const fanOut = countOption("fanOut", options.fanOut ?? FAN_OUT_DEFAULT, 2, FAN_OUT_MAX);
  const most = options.maxLearntBlocks ?? LEARNT_BLOCKS_DEFAULT;
  const maxLearntBlocks = countOption("maxLearntBlocks", most, 1, LEARNT_BLOCKS_MAX);
  const { prefixBlocks = PREFIX_BLOCKS_DEFAULT } = options;
  if (prefixBlocks !== "learnt") {
    countOption("prefixBlocks", prefixBlocks, 1, PREFIX_BLOCKS_MAX);
    return (hashes) => keyOfHashes(hashes.subarray(0, prefixBlocks));
  }
  const shared = new SharedPrefix(fanOut, maxLearntBlocks);
  return (hashes) => keyOfHashes(BigUint64Array.of(shared.firstOwn(hashes)));
}
