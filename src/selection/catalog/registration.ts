import { describe } from "../../core/describe.js";
import type { WorkerId } from "../../core/keys.js";
import { workerKey } from "../../core/worker-key.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import { checkObject, checkText, checkWhole } from "../cache/checks.js";
import type { RoutingPartition } from "../cache/types.js";

/** What is said of a worker when it is added. */
export interface WorkerRegistration {
  readonly workerId: WorkerId;
  /** Default `"default"`. */
  readonly modelName?: string | undefined;
  /** Default `"default"`. */
  readonly routingGroup?: string | undefined;
  /** Where requests are sent; the service only passes it on. */
  readonly endpoint?: string | undefined;
  /** Tokens in a block of the KV cache. A worker without it is not chosen. */
  readonly blockSize?: number | undefined;
  /** The first data-parallel rank. Default 0. */
  readonly dataParallelStartRank?: number | undefined;
  /** How many ranks the worker has, each with a KV cache of its own. Default 1. */
  readonly dataParallelSize?: number | undefined;
  /** Tokens that the engine takes into one pass: what the busy threshold in parts is measured by. */
  readonly maxNumBatchedTokens?: number | undefined;
  /** Blocks of the KV cache of each rank. */
  readonly totalKvBlocks?: number | undefined;
  /** How much the worker can do beside the others. A millionth to a million, default 1. */
  readonly weight?: number | undefined;
  /** Labels that requests can require or prefer. */
  readonly taints?: readonly string[] | undefined;
}

/** What can be changed of a worker. What is absent stays. */
export type WorkerUpdate = Omit<WorkerRegistration, "workerId">;

/** A registration with its defaults. */
export interface WorkerSettings extends RoutingPartition {
  readonly workerId: WorkerId;
  readonly endpoint?: string | undefined;
  readonly blockSize?: number | undefined;
  readonly dataParallelStartRank: number;
  readonly dataParallelSize: number;
  readonly maxNumBatchedTokens?: number | undefined;
  readonly totalKvBlocks?: number | undefined;
  readonly weight: number;
  readonly taints: readonly string[];
}

export const BLOCK_SIZE_MAX = 4_096;
export const DATA_PARALLEL_SIZE_MAX = 1_024;
export const TAINTS_MAX = 64;
/** Beyond these, shares by weight would drown in rounding, or overflow. */
export const WEIGHT_MIN = 1e-6;
export const WEIGHT_MAX = 1e6;
/** Names of models and groups, endpoints and taints, in UTF-16 units. */
export const NAME_LENGTH_MAX = 1_024;

const RANK_MAX = 0xffff_ffff;

/** Checks what is said of a worker, every field of it, and fills in the defaults. */
export function settingsOf(registration: WorkerRegistration): WorkerSettings {
  checkObject(registration, "the worker");
  workerKey(registration.workerId);
  const { workerId, endpoint, blockSize, maxNumBatchedTokens, totalKvBlocks } = registration;
  const { modelName = "default", routingGroup = "default", weight = 1, taints = [] } = registration;
  const { dataParallelStartRank = 0, dataParallelSize = 1 } = registration;
  checkName(modelName, "modelName");
  checkName(routingGroup, "routingGroup");
  if (endpoint !== undefined) checkName(endpoint, "endpoint");
  if (blockSize !== undefined) checkWhole(blockSize, "blockSize", 1, BLOCK_SIZE_MAX);
  checkWhole(dataParallelStartRank, "dataParallelStartRank", 0, RANK_MAX);
  checkWhole(dataParallelSize, "dataParallelSize", 1, DATA_PARALLEL_SIZE_MAX);
  if (maxNumBatchedTokens !== undefined) {
    checkWhole(maxNumBatchedTokens, "maxNumBatchedTokens", 1, Number.MAX_SAFE_INTEGER);
  }
  if (totalKvBlocks !== undefined) checkWhole(totalKvBlocks, "totalKvBlocks", 1, Number.MAX_SAFE_INTEGER);
  checkWeight(weight);
  return {
    workerId,
    modelName,
    routingGroup,
    endpoint,
    blockSize,
    dataParallelStartRank,
    dataParallelSize,
    maxNumBatchedTokens,
    totalKvBlocks,
    weight,
    taints: checkTaints(taints),
  };
}

/** Lays an update over settings and checks the whole. */
export function updatedSettings(settings: WorkerSettings, update: WorkerUpdate): WorkerSettings {
  checkObject(update, "the update");
  const given = Object.entries(update).filter(([, value]) => value !== undefined);
  return settingsOf({ ...settings, ...Object.fromEntries(given), workerId: settings.workerId });
}

/** Checks a name: a text that is not endless. */
export function checkName(name: string, what: string): void {
  checkText(name, what);
  if (name.length <= NAME_LENGTH_MAX) return;
  throw new ArgumentRangeError(
    `Expected ${what} to have at most ${NAME_LENGTH_MAX} characters, got one of ${name.length}.`,
  );
}

function checkWeight(weight: unknown): void {
  if (typeof weight === "number" && weight >= WEIGHT_MIN && weight <= WEIGHT_MAX) return;
  throw new ArgumentRangeError(
    `Expected weight to be a number from ${WEIGHT_MIN} to ${WEIGHT_MAX}, got ${describe(weight)}.`,
  );
}

function checkTaints(taints: readonly string[]): readonly string[] {
  if (!Array.isArray(taints)) {
    throw new ArgumentTypeError(`Expected taints to be a list of strings, got ${describe(taints)}.`);
  }
  if (taints.length > TAINTS_MAX) {
    throw new ArgumentRangeError(`Expected at most ${TAINTS_MAX} taints, got ${taints.length}.`);
  }
  taints.forEach((taint, index) => {
    checkName(taint, `taints[${index}]`);
  });
  return [...new Set(taints)];
}
