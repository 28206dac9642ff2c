/**
 * How an engine names a block: an integer as it was sent, signed or unsigned, or bytes in hexadecimal behind `0x`.
 *
 * The same 64 bits are the same block, whichever sign they were sent with.
 */
export type EngineHash = bigint | `0x${string}`;

/** Blocks of one chain that an engine has stored, root first. */
export interface KvStored {
  readonly type: "stored";
  readonly blockHashes: readonly EngineHash[];
  /** The block that the first one continues; `null` at the start of a prompt. */
  readonly parentBlockHash: EngineHash | null;
  /** `blockSize` tokens for each block. Lower tiers may leave them out. */
  readonly tokenIds: Uint32Array;
  /** Tokens in a block. */
  readonly blockSize: number;
  readonly loraId: number | string | null;
  /** Where the blocks are: absent and `GPU` mean on the device. */
  readonly medium: string | null;
  /** The adapter, also where the engine names it in its extra keys alone. */
  readonly loraName: string | null;
  /** The salt, also where the engine gives it in its extra keys alone, which it does for the first block of a prompt. */
  readonly cacheSalt?: string | null | undefined;
  /** Leading blocks that tokens, adapter and salt identify: from the first image on they do not. Absent: all. */
  readonly textBlocks?: number | undefined;
  /** Which group of layers the blocks belong to, in models that mix kinds of attention. */
  readonly groupIdx: number | null;
  readonly specKind: string | null;
  readonly slidingWindow: number | null;
  /** `LOCAL` or absent, or where else the blocks are. */
  readonly locality?: string | null | undefined;
}

/** Blocks that an engine no longer holds. */
export interface KvRemoved {
  readonly type: "removed";
  readonly blockHashes: readonly EngineHash[];
  readonly medium: string | null;
  readonly groupIdx: number | null;
  readonly specKind?: string | null | undefined;
  readonly slidingWindow?: number | null | undefined;
  readonly locality?: string | null | undefined;
}

/** Says that an engine holds no block any more. */
export interface KvCleared {
  readonly type: "cleared";
}

export type KvEvent = KvStored | KvRemoved | KvCleared;

/** What one message of an engine says. */
export interface KvEventBatch {
  /** When the engine made the batch, in seconds of its clock. */
  readonly ts: number;
  /** The rank that the engine says it is; `null` if it says nothing. */
  readonly dpRank: number | null;
  readonly events: readonly KvEvent[];
  /** Events of a kind that is not known here; they are left out. */
  readonly ignored: number;
}

/** What a hash is looked up by: the same for a signed and an unsigned integer of the same 64 bits. */
export type EngineKey = EngineHash;

/** Gives the key of a hash. */
export function keyOf(hash: EngineHash): EngineKey {
  return typeof hash === "bigint" ? BigInt.asUintN(64, hash) : hash;
}

/** Bytes that an event takes in memory, roughly: object and list headers, 8 for an integer, 2 for a character, 4 for a token. */
export function weighEvent(event: KvEvent): number {
  if (event.type === "cleared") return OBJECT_BYTES;
  let bytes = OBJECT_BYTES + textBytes(event.medium) + textBytes(event.specKind) + textBytes(event.locality);
  for (const hash of event.blockHashes) bytes += HASH_BYTES + (typeof hash === "string" ? textBytes(hash) : 0);
  if (event.type === "removed") return bytes;
  const { tokenIds, loraId, loraName, cacheSalt } = event;
  const names = textBytes(loraName) + textBytes(cacheSalt) + (typeof loraId === "string" ? textBytes(loraId) : 0);
  return bytes + tokenIds.byteLength + names;
}

const OBJECT_BYTES = 256;
const HASH_BYTES = 32;

function textBytes(text: string | null | undefined): number {
  return 2 * (text?.length ?? 0);
}
