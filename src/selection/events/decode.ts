import { describe } from "../../core/describe.js";
import { ArgumentTypeError } from "../../errors.js";
import type { EngineHash, KvCleared, KvEvent, KvEventBatch, KvRemoved, KvStored } from "./event.js";
import {
  type EventFields,
  fieldError,
  isMap,
  readCount,
  readHash,
  readHashes,
  readList,
  readOptionalCount,
  readOptionalText,
  readTokens,
} from "./fields.js";
import { readIdentity } from "./identity.js";
import { readMsgpack } from "./msgpack.js";
import { isElsewhere, tierOf } from "./tiers.js";

/** The largest data-parallel rank. */
export const DP_RANK_MAX = 0xffff;
/** The most tokens of a block that an event may speak of. */
const BLOCK_TOKENS_MAX = 0x7fff_ffff;

/**
 * Decodes the payload of an engine's message, its third frame, in the array form or the tagged form of vLLM and SGLang.
 *
 * @throws {KvEventError} `KVROUTE_KV_EVENT_PAYLOAD` if the bytes are not one msgpack value, `KVROUTE_KV_EVENT_FIELD` if a
 * field is missing or has a value that it cannot have; the message names it
 */
export function decodeKvEvents(payload: Uint8Array): KvEventBatch {
  if (!(payload instanceof Uint8Array)) {
    throw new ArgumentTypeError(`Expected payload to be a Uint8Array, got ${describe(payload)}.`);
  }
  const { ts, events: items, rank } = openBatch(readMsgpack(payload));
  const known = items.map(readEvent).filter((event) => event !== null);
  return { ts, dpRank: rank, events: known, ignored: items.length - known.length };
}

function openBatch(batch: unknown): { ts: number; events: readonly unknown[]; rank: number | null } {
  if (!Array.isArray(batch) && !isMap(batch)) throw fieldError("batch", "a list or a map", batch);
  const [ts, events, rank]: readonly unknown[] = Array.isArray(batch)
    ? batch
    : [batch["ts"], batch["events"], batch["data_parallel_rank"]];
  return {
    ts: readSeconds(ts),
    events: readList(events, "events"),
    rank: rank === undefined || rank === null ? null : readCount(rank, "data_parallel_rank", 0, DP_RANK_MAX),
  };
}

function readSeconds(value: unknown): number {
  const seconds = typeof value === "bigint" ? Number(value) : value;
  if (typeof seconds === "number" && Number.isFinite(seconds)) return seconds;
  throw fieldError("ts", "a number of seconds", value);
}

/** Reads one event; `null` if it is of a kind that is not known here. */
function readEvent(event: unknown, at: number): KvEvent | null {
  if (!Array.isArray(event) && !isMap(event)) throw fieldError(`events[${at}]`, "a list or a map", event);
  const list: readonly unknown[] | null = Array.isArray(event) ? event : null;
  const tag = list === null ? (event as Readonly<Record<string, unknown>>)["type"] : list[0];
  if (typeof tag !== "string") throw fieldError(`events[${at}].type`, "a text", tag);
  if (tag === "BlockStored") return readStored(list === null ? (event as EventFields) : storedFields(list));
  if (tag === "BlockRemoved") return readRemoved(list === null ? (event as EventFields) : removedFields(list));
  return tag === "AllBlocksCleared" ? CLEARED : null;
}

const CLEARED: KvCleared = { type: "cleared" };

/** Names the fields of an array by their order. */
function storedFields(list: readonly unknown[]): EventFields {
  const [, block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name, extra_keys] = list;
  const hasImages = Array.isArray(list[9]) || (list[9] === null && typeof list[10] === "number"); // Dynamo's extra field
  return {
    ...{ block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name, extra_keys },
    block_mm_infos: hasImages ? list[9] : null,
    ...groupFields(list.slice(hasImages ? 10 : 9)),
  };
}

function removedFields([, block_hashes, medium, ...group]: readonly unknown[]): EventFields {
  return { block_hashes, medium, ...groupFields(group) };
}

/** Names the last fields: group, kind, window and locality in that order. Kind, or kind and window, may be left out. */
function groupFields([group_idx, second, ...rest]: readonly unknown[]): EventFields {
  if (second === "LOCAL" || second === "REMOTE") return { group_idx, locality: second };
  if (typeof second === "number") return { group_idx, kv_cache_spec_sliding_window: second, locality: rest[0] };
  const [kv_cache_spec_sliding_window, locality] = rest;
  return { group_idx, kv_cache_spec_kind: second, kv_cache_spec_sliding_window, locality };
}

function readStored(fields: EventFields): KvStored {
  const blockHashes = readHashes(fields.block_hashes, "block_hashes");
  const parentBlockHash = readParent(fields.parent_block_hash);
  const place = readPlace(fields);
  const isDevice = tierOf(place.medium) === "device" && !isElsewhere(place.locality);
  const tokenIds = readTokens(fields.token_ids, "token_ids");
  const blockSize = readCount(fields.block_size, "block_size", isDevice ? 1 : 0, BLOCK_TOKENS_MAX);
  const tokens = blockHashes.length * blockSize;
  if (isDevice && tokenIds.length < tokens) {
    throw fieldError(
      "token_ids",
      `a list of ${tokens} tokens or more, for ${blockHashes.length} blocks`,
      tokenIds.length,
    );
  }
  const identity = readIdentity(fields, blockHashes.length, parentBlockHash === null);
  return {
    type: "stored",
    blockHashes,
    parentBlockHash,
    tokenIds,
    blockSize,
    loraId: readLoraId(fields),
    ...identity,
    ...place,
  };
}

function readRemoved(fields: EventFields): KvRemoved {
  return { type: "removed", blockHashes: readHashes(fields.block_hashes, "block_hashes"), ...readPlace(fields) };
}

/** Where blocks are: on which medium, in which group of layers. */
type Place = Required<Pick<KvStored, "medium" | "groupIdx" | "specKind" | "slidingWindow" | "locality">>;

function readPlace(fields: EventFields): Place {
  return {
    medium: readOptionalText(fields.medium, "medium"),
    groupIdx: readOptionalCount(fields.group_idx, "group_idx"),
    specKind: readOptionalText(fields.kv_cache_spec_kind, "kv_cache_spec_kind"),
    slidingWindow: readOptionalCount(fields.kv_cache_spec_sliding_window, "kv_cache_spec_sliding_window"),
    locality: readOptionalText(fields.locality, "locality"),
  };
}

/** Reads the parent, which a chain without one says by nil: a field left out would make any chain a prompt's start. */
function readParent(value: unknown): EngineHash | null {
  return value === null ? null : readHash(value, "parent_block_hash");
}

function readLoraId({ lora_id }: EventFields): number | string | null {
  return typeof lora_id === "string" ? lora_id : readOptionalCount(lora_id, "lora_id");
}
