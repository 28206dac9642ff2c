import type { WorkerId, WorkerWithDpRank } from "../../core/keys.js";
import type { PolicyTerms } from "../policy.js";

/** Names a partition: what is routed together. */
export interface PartitionRequest {
  /** Default `"default"`. */
  readonly modelName?: string | undefined;
  /** Default `"default"`. */
  readonly routingGroup?: string | undefined;
}

/** What a request asks the model to read: token ids, or the hashes of its blocks and how many tokens they are of. */
export interface Prompt {
  /** From 0 to 2^32 - 1 each. They win over hashes. */
  readonly tokenIds?: Uint32Array | readonly number[] | undefined;
  /** One hash per full block, root first, as `hashTokens` gives them. Needs `islTokens`. */
  readonly sequenceHashes?: BigUint64Array | readonly bigint[] | undefined;
  /** Tokens of the prompt, 1 to 536,870,912. */
  readonly islTokens?: number | undefined;
  /** The adapter; its name goes into the hashes. */
  readonly loraName?: string | undefined;
  /** Keeps the caches of tenants apart; it goes into the hashes. */
  readonly cacheSalt?: string | undefined;
}

/** A worker, or one rank of it. */
export interface WorkerTarget {
  readonly workerId: WorkerId;
  readonly dpRank?: number | undefined;
}

/** Which workers may serve a request. */
export interface RoutingConstraints {
  /** Nobody but this worker. */
  readonly pinnedWorker?: WorkerTarget | undefined;
  /** Nobody but these. */
  readonly allowedWorkerIds?: readonly WorkerId[] | undefined;
  /** Only workers that have all of these taints. */
  readonly requiredTaints?: readonly string[] | undefined;
  /** Taints that make a worker cheaper, above 0, or dearer, below 0, for policies with a cost: `kv` and `dynamo`. */
  readonly preferredTaints?: Readonly<Record<string, number>> | undefined;
}

/** Asks for the best worker. */
export interface SelectRequest extends PartitionRequest, Prompt, RoutingConstraints {
  /** Under this id the selection waits to be booked, and is booked. Without it `select` keeps nothing. */
  readonly selectionId?: string | undefined;
  readonly expectedOutputTokens?: number | undefined;
  /** Whether the prefill counts as load until it ends. Default: as the service says, true. */
  readonly trackPrefillTokens?: boolean | undefined;
  /** Names the conversation; it stays with its worker where costs are near. */
  readonly session?: string | undefined;
  /** Whose conversation it is: ids that clients choose may coincide. Default `""`. */
  readonly tenant?: string | undefined;
  /** What stateless policies hash, such as a hash of the first messages. */
  readonly affinityKey?: string | undefined;
  /** Whether the selection is to say what it was made of. Default false. */
  readonly explain?: boolean | undefined;
}

/** What became of the worker of a session: chosen first, kept, lost, or left for a better one. */
export type SessionDecision = "initialize" | "retain" | "switch" | "spill";

/** The worker that was chosen, and what the request would take there. */
export interface Selection {
  readonly selectionId?: string | undefined;
  readonly modelName: string;
  readonly routingGroup: string;
  readonly worker: WorkerWithDpRank;
  readonly endpoint?: string | undefined;
  /** Tokens in a block. */
  readonly blockSize: number;
  readonly islTokens: number;
  /** Not to be changed before the selection is booked or given up. */
  readonly sequenceHashes: BigUint64Array;
  /** Leading blocks of the prompt that the worker is believed to hold. */
  readonly overlapBlocks: number;
  /** Tokens of these, at most those of the prompt. */
  readonly cachedTokens: number;
  /** Tokens of the prompt that the worker has to compute. */
  readonly effectivePrefillTokens: number;
  /** Blocks that the worker would have in use. */
  readonly potentialDecodeBlocks: number;
  /** Whether that is more than its threshold; `undefined` where threshold or cache size are not known. */
  readonly decodeBusy?: boolean | undefined;
  /** The worker that served the session last, `undefined` where none is known. */
  readonly home?: WorkerWithDpRank | undefined;
  /** What became of the session's worker; `undefined` without a session. */
  readonly decision?: SessionDecision | undefined;
  readonly explanation?: Explanation | undefined;
}

/** Why a worker was chosen, and the others were not. */
export interface Explanation {
  readonly policy: string;
  /** Leading blocks of the prompt that many unfinished requests contain. */
  readonly hotBlocks: number;
  readonly averageMissedTokens: number;
  readonly candidates: readonly ExplainedCandidate[];
  /** Workers that a filter kept from being candidates. */
  readonly excluded: readonly ExcludedWorker[];
}

export interface ExplainedCandidate {
  readonly worker: WorkerWithDpRank;
  readonly isChosen: boolean;
  readonly overlapBlocks: number;
  /** The terms of the policy by name; a policy without a cost has none. */
  readonly terms: PolicyTerms;
}

export interface ExcludedWorker {
  readonly worker: WorkerWithDpRank;
  readonly reason: string;
}

/**
 * Books a request: what was selected under its id, or, with a `workerId`, on a worker that the caller has chosen. The other
 * fields count in the second form alone.
 */
export interface ReserveRequest extends PartitionRequest, Prompt {
  readonly selectionId: string;
  readonly workerId?: WorkerId | undefined;
  /** Default 0. */
  readonly dpRank?: number | undefined;
  readonly expectedOutputTokens?: number | undefined;
  /** Tokens that the worker has to compute, at most those of the prompt. Default: as the index says. */
  readonly effectivePrefillTokens?: number | undefined;
  /** Default: true where `effectivePrefillTokens` is given, else as the service says. */
  readonly trackPrefillTokens?: boolean | undefined;
  readonly session?: string | undefined;
  readonly tenant?: string | undefined;
}

/** A request that is booked on a worker. */
export interface Booking {
  readonly selectionId: string;
  readonly modelName: string;
  readonly routingGroup: string;
  readonly worker: WorkerWithDpRank;
  readonly endpoint?: string | undefined;
  readonly islTokens: number;
  readonly effectivePrefillTokens: number;
  /** Whether these count as load until the prefill ends. */
  readonly trackPrefillTokens: boolean;
  /** Whether the same request was booked under the id before: this is that booking. */
  readonly existing: boolean;
  /** When the booking ends unless something is heard of it, by the clock of the service. */
  readonly expiresAtMs: number;
}

/** Why a booking ended without being freed. */
export type BookingEnd = "lease-expired" | "worker-removed";

/** A booking that ended without being freed. */
export interface Expired {
  readonly selectionId: string;
  readonly worker: WorkerWithDpRank;
  readonly reason: BookingEnd;
}

/** What a worker would have to do if it took a request. */
export interface PotentialLoad {
  readonly worker: WorkerWithDpRank;
  readonly potentialPrefillTokens: number;
  readonly potentialDecodeBlocks: number;
  readonly activeRequests: number;
}

/** What a worker has to do. */
export interface ActiveLoad {
  readonly worker: WorkerWithDpRank;
  readonly activePrefillTokens: number;
  readonly activeBlocks: number;
  readonly activeRequests: number;
}

/** How much of a prompt a worker holds. */
export interface OverlapScore {
  readonly worker: WorkerWithDpRank;
  readonly overlapBlocks: number;
}

/** From where on a worker counts as busy. What is absent, or not known of a worker, keeps nobody out. */
export interface BusyThresholds {
  /** Tokens of prefill that are booked. */
  readonly activePrefillTokens?: number | undefined;
  /** The same as a part of `maxNumBatchedTokens`. */
  readonly activePrefillFraction?: number | undefined;
  /** Part of the KV cache in use: as the worker reports it, else as it is booked. */
  readonly kvUsage?: number | undefined;
  /** Requests that are booked. */
  readonly activeRequests?: number | undefined;
}

/** What went by itself: for want of room, or because its time had come. */
export interface Dropped {
  readonly evicted: number;
  readonly expired: number;
}

/** How much there is, and what has gone by itself. */
export interface SelectionStats {
  readonly workers: number;
  readonly schedulableRanks: number;
  readonly bookings: number;
  readonly pendingSelections: number;
  readonly sessions: number;
  readonly index: { readonly blocks: number; readonly entries: number };
  /** Bookings whose leases ran out. */
  readonly expiredBookings: number;
  /** Bookings that ended with their worker. */
  readonly lostBookings: number;
  readonly dropped: { readonly selections: Dropped; readonly sessions: Dropped; readonly indexEntries: Dropped };
  /** How far predictions of cached tokens were off where engines have reported them. */
  readonly prediction: { readonly reports: number; readonly meanErrorTokens: number };
}
