import type { WorkerId, WorkerWithDpRank } from "../core/keys.js";
import { OptionError } from "../errors.js";
import { type CacheAwareOptions, cacheAware } from "./policies/cache-aware.js";
import { type DynamoOptions, dynamo } from "./policies/dynamo.js";
import { type KvOptions, type KvPreset, kv } from "./policies/kv.js";
import { leastLoaded } from "./policies/least-loaded.js";
import { longestPrefix } from "./policies/longest-prefix.js";
import { powerOfTwo } from "./policies/power-of-two.js";
import { type PrefixHashOptions, prefixHash } from "./policies/prefix-hash.js";
import { random } from "./policies/random.js";
import { roundRobin } from "./policies/round-robin.js";
import { type SessionPinOptions, sessionPin } from "./policies/session-pin.js";

export {
  type CacheAwareOptions,
  cacheAware,
  type DynamoOptions,
  dynamo,
  type KvOptions,
  type KvPreset,
  kv,
  leastLoaded,
  longestPrefix,
  type PrefixHashOptions,
  powerOfTwo,
  prefixHash,
  random,
  roundRobin,
  type SessionPinOptions,
  sessionPin,
};

/**
 * What a policy knows of one worker while it chooses. The objects are used again for the next request: a policy that keeps
 * something of them copies it.
 */
export interface Candidate {
  readonly worker: WorkerWithDpRank;
  /** Leading blocks of the request that the worker is believed to hold. May be computed when first read. */
  readonly overlapBlocks: number;
  /** Blocks of the request that unfinished requests keep active on the worker. May be computed when first read. */
  readonly activeOverlapBlocks: number;
  /** How much the worker can do beside the others, above 0; 1 unless somebody has said so. */
  readonly weight: number;
  /** The sum of the weights of the preferred taints that the worker has; 0 is neutral, below 0 is to be avoided. */
  readonly preference: number;
  readonly load: CandidateLoad;
}

/** How busy a worker is and has been, by what was booked on it. */
export interface CandidateLoad {
  /** Blocks of all requests sent to the worker so far that it had to compute. */
  readonly missedBlocks: number;
  /** Requests sent to the worker that have not ended. */
  readonly activeRequests: number;
  /** Blocks that these requests keep in use, shared ones once, and what they have put out. */
  readonly activeBlocks: number;
  /** Requests sent to the worker whose prefill has not ended. */
  readonly activePrefills: number;
  /** Tokens that these prefills have to compute. */
  readonly activePrefillTokens: number;
  /** Tokens of the first of them, which is taken to be the one that runs; 0 if there is none. */
  readonly headTokens: number;
  /** Since when the first of them is taken to run, in milliseconds. */
  readonly headSinceMs: number;
  /** Tokens that the worker computes in a millisecond, as learnt from prefills that ended; 0 before any has. */
  readonly tokensPerMs: number;
  /** Prefills of the worker that have ended: as many as its speed was learnt from. */
  readonly endedPrefills: number;
  /** Tokens booked lately: each counts less as time passes, to 1/e after a minute by default. */
  readonly recentTokens: number;
}

/** What a policy knows of the request. */
export interface RoutingRequest {
  /** One hash per full block of the prompt, root first. */
  readonly sequenceHashes: BigUint64Array;
  /** Tokens in the whole prompt, its last and partial block included. */
  readonly promptTokens: number;
  /** Tokens in one block. */
  readonly blockTokens: number;
  /** Names the conversation that the request belongs to, where the client says so, and its tenant, where there are several. */
  readonly session?: string | undefined;
  /** The worker that served the session's last request, where somebody has kept it. */
  readonly home?: WorkerWithDpRank | undefined;
  /** What the request has in common with those that can share its cache, such as a hash of its first messages. */
  readonly affinityKey?: string | undefined;
}

/** What a policy reads of the world: time and chance come from outside, so that a run can be repeated. */
export interface PolicyContext {
  readonly nowMs: number;
  /** Gives a number from 0 up to, but not including, 1. */
  random(): number;
  /** Leading blocks of the request that many unfinished prefills contain: at least the policy's `hotRequests`. */
  readonly hotBlocks: number;
  /** The moving average of the tokens that requests had to have computed. */
  readonly averageMissedTokens: number;
  /** Whether the choice is to say what it was made of. */
  readonly explain?: boolean | undefined;
}

/** What a policy decided. */
export interface Choice {
  /** The position of the chosen worker in the list of candidates. */
  readonly index: number;
  /** What the choice was made of, a record for each candidate in their order, where the context asks to explain. */
  readonly terms?: readonly PolicyTerms[] | undefined;
}

/** The terms of one candidate, by name. What is lowest in `cost` was wanted. */
export type PolicyTerms = Readonly<Record<string, number>>;

/** Decides which worker serves a request. It may keep state of its own, and it takes no time or chance but its context's. */
export interface Policy {
  readonly name: string;
  /** How many unfinished prefills make a block that they all contain hot; without it none ever is. */
  readonly hotRequests?: number | undefined;
  /** Chooses among one or more candidates. */
  choose(candidates: readonly Candidate[], request: RoutingRequest, context: PolicyContext): Choice;
  /** Forgets a worker that has gone, where the policy remembers any. */
  removeWorker?(workerId: WorkerId): void;
}

/** The names under which policies are chosen on the command line and in options. */
export const POLICY_NAMES = [
  "kv",
  "latency-first",
  "cache-first",
  "dynamo",
  "round-robin",
  "random",
  "least-loaded",
  "power-of-two",
  "prefix-hash",
  "cache-aware",
  "longest-prefix",
  "session-pin",
] as const;

export type PolicyName = (typeof POLICY_NAMES)[number];

/** The options of all policies together; each policy reads its own. */
export interface PolicyOptions
  extends KvOptions,
    DynamoOptions,
    PrefixHashOptions,
    CacheAwareOptions,
    SessionPinOptions {}

const factories: Readonly<Record<PolicyName, (options: PolicyOptions) => Policy>> = {
  kv,
  "latency-first": preset("latency-first"),
  "cache-first": preset("cache-first"),
  dynamo,
  "round-robin": roundRobin,
  random,
  "least-loaded": leastLoaded,
  "power-of-two": powerOfTwo,
  "prefix-hash": prefixHash,
  "cache-aware": cacheAware,
  "longest-prefix": longestPrefix,
  "session-pin": sessionPin,
};

/** Makes `kv` with a preset that is a policy's name as well. */
function preset(name: KvPreset): (options: PolicyOptions) => Policy {
  return (options) => kv({ ...options, preset: name });
}

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
