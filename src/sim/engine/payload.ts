import { encode } from "@msgpack/msgpack";
import type { KvEvent, KvEventBatch, KvStored } from "../../selection/events/event.js";

export type { KvEvent, KvEventBatch } from "../../selection/events/event.js";

/** What an engine says about its cache when it begins a pass: a message with its number. */
export interface KvMessage extends KvEventBatch {
  /** Counts from 0. */
  readonly seq: number;
}

/** Encodes a batch as vLLM sends it, the third frame of its message: msgpack, in the array form. */
export function encodeKvEvents({ ts, events, dpRank }: Pick<KvEventBatch, "ts" | "events" | "dpRank">): Uint8Array {
  return encode([ts, events.map(arrayOf), dpRank], { useBigInt64: true });
}

function arrayOf(event: KvEvent): unknown[] {
  if (event.type === "cleared") return ["AllBlocksCleared"];
  if (event.type === "removed") return ["BlockRemoved", event.blockHashes, event.medium];
  const { blockHashes, parentBlockHash, tokenIds, blockSize, loraId, medium, loraName } = event;
  const tokens = Array.from(tokenIds);
  const head = ["BlockStored", blockHashes, parentBlockHash, tokens, blockSize, loraId, medium, loraName];
  return [...head, extraKeys(event)];
}

/** Lists for each block what else its hash depends on: the adapter, and in the first of a prompt the salt. */
function extraKeys({ blockHashes, parentBlockHash, loraName, cacheSalt }: KvStored): unknown {
  const hasSalt = cacheSalt !== null && cacheSalt !== undefined && parentBlockHash === null;
  if (loraName === null && !hasSalt) return null;
  return blockHashes.map((_, at) => {
    const keys = [...(loraName === null ? [] : [loraName]), ...(hasSalt && at === 0 ? [cacheSalt] : [])];
    return keys.length === 0 ? null : keys;
  });
}
