import { describe } from "../../core/describe.js";
import type { WorkerWithDpRank } from "../../core/keys.js";
import { overlapOf, type PrefixIndex } from "../../core/prefix-index.js";
import { NoWorkerError, OptionError } from "../../errors.js";
import { checkName } from "../catalog/registration.js";
import { isSameWorker } from "../policies/choose.js";
import type { Choice, Policy, PolicyContext, RoutingRequest } from "../policy.js";
import { type SessionTable, sessionKey, sessionNamed } from "../sessions.js";
import type { Partition, WorkerRow } from "../workers.js";
import { type Eligible, findEligible } from "./eligible.js";
import { type ResolvedPrompt, resolvePrompt } from "./prompt.js";
import type { BusyThresholds, Explanation, SelectRequest, SessionDecision } from "./types.js";

/** A worker for a request, and what led to it. */
export interface Decision {
  readonly partition: Partition;
  readonly row: WorkerRow;
  readonly prompt: ResolvedPrompt;
  readonly blockSize: number;
  readonly overlapBlocks: number;
  readonly potentialDecodeBlocks: number;
  readonly home: WorkerWithDpRank | undefined;
  readonly decision: SessionDecision | undefined;
  readonly explanation: Explanation | undefined;
}

/** What choosing takes. */
export interface DeciderParts {
  readonly policy: Policy;
  readonly index: PrefixIndex;
  readonly sessions: SessionTable;
  readonly random: () => number;
  readonly busy: BusyThresholds;
}

/** Chooses workers. It books nothing and remembers nothing, but what the policy does. */
export class Decider {
  readonly #parts: DeciderParts;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
  }

  /**
   * Chooses the worker for a request.
   *
   * @throws {NoWorkerError} `KVROUTE_NO_WORKER` if no schedulable worker passes the constraints
   * @throws {WorkersBusyError} `KVROUTE_WORKERS_BUSY` if all of those are busy
   */
  decide(request: SelectRequest, partition: Partition, nowMs: number): Decision {
    const blockSize = blockSizeOf(partition);
    const prompt = resolvePrompt(request, blockSize);
    const hotBlocks = this.consider(partition, prompt, nowMs);
    const explain = request.explain === true;
    const eligible = findEligible(partition.schedulable, request, this.#parts.busy, explain);
    const { random } = this.#parts;
    const { averageMissedTokens } = partition.load;
    const context = { nowMs, random, hotBlocks, averageMissedTokens, explain };
    const routing = this.#routingRequest(request, prompt, blockSize, nowMs);
    const choice = this.#parts.policy.choose(eligible.rows, routing, context);
    const row = this.#rowOf(choice, eligible);
    return {
      partition,
      row,
      prompt,
      blockSize,
      overlapBlocks: row.overlapBlocks,
      potentialDecodeBlocks: potentialBlocksOf(row, prompt),
      home: routing.home,
      decision: decisionOf(routing, row, eligible),
      explanation: explain ? this.#explanation(choice, eligible, context) : undefined,
    };
  }

  /** Sets what each worker of a partition holds of a prompt. Returns how many leading blocks of it are hot. */
  consider(partition: Partition, { sequenceHashes }: ResolvedPrompt, nowMs: number): number {
    partition.load.advance(nowMs);
    for (const row of partition.schedulable) {
      row.overlapBlocks = 0;
      row.activeOverlapBlocks = 0;
    }
    if (sequenceHashes.length === 0) return 0;
    const { index, policy } = this.#parts;
    const held = overlapOf(index, sequenceHashes, nowMs);
    for (let at = 0; at < held.workers.length; at++) {
      const row = partition.findSame(held.workers[at] as WorkerWithDpRank);
      if (row !== undefined) row.overlapBlocks = held.blocks[at] as number;
    }
    const active = partition.blocks.potential(sequenceHashes, policy.hotRequests ?? Number.POSITIVE_INFINITY);
    for (let at = 0; at < active.workers.length; at++) {
      const row = partition.findSame(active.workers[at] as WorkerWithDpRank);
      if (row === undefined) continue; // it drains, or it is of another partition
      const blocks = active.blocks[at] as number;
      row.activeOverlapBlocks = blocks;
      // What an unfinished request has booked, its worker will hold before this one has its turn.
      if (blocks > row.overlapBlocks) row.overlapBlocks = blocks;
    }
    return active.hotBlocks;
  }

  #routingRequest(
    request: SelectRequest,
    { sequenceHashes, promptTokens }: ResolvedPrompt,
    blockTokens: number,
    nowMs: number,
  ): RoutingRequest {
    const { affinityKey } = request;
    if (affinityKey !== undefined) checkName(affinityKey, "affinityKey");
    const { session, tenant } = sessionNamed(request);
    if (session === undefined) return { sequenceHashes, promptTokens, blockTokens, affinityKey };
    const home = this.#parts.sessions.find(tenant, session, nowMs);
    return { sequenceHashes, promptTokens, blockTokens, affinityKey, session: sessionKey(tenant, session), home };
  }

  #rowOf(choice: Choice | undefined, { rows }: Eligible): WorkerRow {
    const index: unknown = choice?.index; // a policy may be anybody's
    const row = typeof index === "number" ? rows[index] : undefined;
    if (row !== undefined) return row;
    const { name } = this.#parts.policy;
    const wanted = `the policy ${name} to choose an index from 0 to ${rows.length - 1}`;
    throw new OptionError(`Expected ${wanted}, got ${describe(index)}.`);
  }

  #explanation(choice: Choice, { rows, excluded }: Eligible, context: PolicyContext): Explanation {
    return {
      policy: this.#parts.policy.name,
      hotBlocks: context.hotBlocks,
      averageMissedTokens: context.averageMissedTokens,
      candidates: rows.map((row, index) => ({
        worker: row.worker,
        isChosen: index === choice.index,
        overlapBlocks: row.overlapBlocks,
        terms: choice.terms?.[index] ?? {},
      })),
      excluded,
    };
  }
}

/** The block size of a partition: it has one as soon as a worker can be chosen. */
export function blockSizeOf({ blockSize, modelName, routingGroup }: Partition): number {
  if (blockSize !== undefined) return blockSize;
  throw new NoWorkerError(`no worker for model "${modelName}" in group "${routingGroup}" has said its blockSize`);
}

/** Blocks that a worker would have in use if it took a prompt. */
export function potentialBlocksOf(row: WorkerRow, { sequenceHashes }: ResolvedPrompt): number {
  return row.load.activeBlocks + sequenceHashes.length - row.activeOverlapBlocks;
}

/** Tokens of a prompt that a worker has to compute which holds so many of its blocks. */
export function prefillTokensOf(promptTokens: number, overlapBlocks: number, blockSize: number): number {
  return Math.max(0, promptTokens - overlapBlocks * blockSize);
}

function decisionOf(
  { session, home }: RoutingRequest,
  chosen: WorkerRow,
  { rows }: Eligible,
): SessionDecision | undefined {
  if (session === undefined) return undefined;
  if (home === undefined) return "initialize";
  if (isSameWorker(home, chosen.worker)) return "retain";
  return rows.some(({ worker }) => isSameWorker(worker, home)) ? "spill" : "switch";
}
