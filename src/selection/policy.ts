import type { WorkerWithDpRank } from "../core/keys.js";
import { OptionError } from "../errors.js";
import { type CacheAwareOptions, cacheAware } from "./policies/cache-aware.js";
import { leastLoaded } from "./policies/least-loaded.js";
import { type PrefixHashOptions, prefixHash } from "./policies/prefix-hash.js";
import { random } from "./policies/random.js";
import { roundRobin } from "./policies/round-robin.js";

export { type CacheAwareOptions, cacheAware, leastLoaded, type PrefixHashOptions, prefixHash, random, roundRobin };

/** What a policy knows of one worker while it chooses. */
export interface Candidate {
  readonly worker: WorkerWithDpRank;
  /** Leading blocks of the request that the worker is believed to hold. May be computed when first read. */
  readonly overlapBlocks: number;
  readonly load: CandidateLoad;
}

/** How busy a worker is and has been. */
export interface CandidateLoad {
  /** Blocks of all requests sent to the worker so far that it had to compute. */
  readonly missedBlocks: number;
  /** Requests sent to the worker that have not ended. */
  readonly activeRequests: number;
  /** Prompt tokens booked on the worker whose prefill has not ended. */
  readonly activePrefillTokens: number;
}

/** What a policy knows of the request. */
export interface RoutingRequest {
  /** One hash per full block of the prompt, root first. */
  readonly sequenceHashes: BigUint64Array;
  /** Tokens in the whole prompt, its last and partial block included. */
  readonly promptTokens: number;
  /** Tokens in one block. */
  readonly blockTokens: number;
  /** Names the conversation that the request belongs to, where the client says so. */
  readonly session?: string | undefined;
}

/** What a policy reads of the world: time and chance come from outside, so that a run can be repeated. */
export interface PolicyContext {
  readonly nowMs: number;
  /** Gives a number from 0 up to, but not including, 1. */
  random(): number;
}

/** What a policy decided. */
export interface Choice {
  /** The position of the chosen worker in the list of candidates. */
  readonly index: number;
}

/** Decides which worker serves a request. It may keep state of its own, and it takes no time or chance but its context's. */
export interface Policy {
  readonly name: string;
  /** Chooses among one or more candidates. */
  choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice;
}

/** The names under which policies are chosen on the command line and in options. */
export const POLICY_NAMES = ["round-robin", "random", "least-loaded", "prefix-hash", "cache-aware"] as const;

export type PolicyName = (typeof POLICY_NAMES)[number];

/** The options of all policies together; each policy reads its own. */
export interface PolicyOptions extends PrefixHashOptions, CacheAwareOptions {}

const factories: Readonly<Record<PolicyName, (options: PolicyOptions) => Policy>> = {
  "round-robin": roundRobin,
  random,
  "least-loaded": leastLoaded,
  "prefix-hash": prefixHash,
  "cache-aware": cacheAware,
};

/** Tells whether a policy goes by this name. */
export function isPolicyName(name: string): name is PolicyName {
  return (POLICY_NAMES as readonly string[]).includes(name);
}

/**
 * Makes a policy by its name, with a state of its own.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if no policy has this name, or if an option of the policy is out of range
 */
export function createPolicy(name: PolicyName, options: PolicyOptions = {}): Policy {
  if (!isPolicyName(name)) throw new OptionError(`Expected a policy among ${POLICY_NAMES.join(", ")}, got ${name}.`);
  return factories[name](options);
}
