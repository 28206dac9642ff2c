import { ArgumentTypeError, ProtocolError } from "../errors.js";
import { checkI64, checkU32, checkU64 } from "./checks.js";
import { blank, checkBytes, type MessageBytes, open, viewOf } from "./protocol/bytes.js";

export type { MessageBytes } from "./protocol/bytes.js";
export * from "./protocol/pipeline.js";

// The messages between router, prefill and decode workers: little-endian, without a length, tag or version inside.
//
//     router ── 10 prompt, 30 PrefillRequest ──▶ prefill ── 32 KV header, 32 KV payload ──▶ decode
//     router ◀─ 31 PrefillDone ───────────────── prefill ◀─ 33 KV ack ───────────────────── decode
//     router ── 34 DecodeRequest ──────────────────────────────────────────────────────────▶ decode
//     router ◀─ 35 DecodedToken, as many as there are; 36 DecodeDone ─────────────────────── decode
//     37 Error, from a worker to whom it concerns; 38 Cancel, from the router to both
//
// Tags 37 and 38 are ours, the next that were free; everything else is the original's, byte for byte.

/** What kind of message an envelope carries. */
export const TAGS = {
  layerAssignment: 1,
  promptTokens: 10,
  genRequestHeader: 20,
  prefillRequest: 30,
  prefillDone: 31,
  kvCache: 32,
  kvCacheAck: 33,
  decodeRequest: 34,
  decodedToken: 35,
  decodeDone: 36,
  error: 37,
  cancel: 38,
} as const;

/** The token id that ends an answer and is not part of it. */
export const DONE_SENTINEL = -1n;

/** The token id that a model ends its sequence with. */
export const EOS_TOKEN = -(2n ** 63n);

/** Bytes of a token id in a prompt. */
export const TOKEN_BYTES = 8;

/** Bytes of the text of an Error, at most. */
export const ERROR_TEXT_BYTES_MAX = 1_024;

/** Why a worker gives a request up. A decoder lets other numbers pass: a later version may know more. */
export const ERROR_CODES = {
  /** The function that computes threw. */
  failed: 1,
  /** The worker is at a limit of its own, such as its concurrency. */
  busy: 2,
  /** The KV cache, or the prompt, has more bytes than the worker takes. */
  tooLarge: 3,
  /** No KV cache has come for the request, or it was dropped before it was claimed. */
  kvMissing: 4,
  /** A message of the request cannot be decoded, or contradicts another. */
  badMessage: 5,
  /** The worker is about to close. */
  closing: 6,
  /** The other worker of the request cannot be reached. */
  peerLost: 7,
} as const;

const PAIR_BYTES = 16;
const WORD_BYTES = 8;
const ERROR_TEXT_OFFSET = 12;

/** Bytes of an Error, at most. No answer of a worker has more. */
export const ERROR_BYTES_MAX = ERROR_TEXT_OFFSET + ERROR_TEXT_BYTES_MAX;

/** Describes one prefill run. Tag 30, router to prefill. */
export interface PrefillRequest {
  readonly requestId: bigint;
  /** Tokens of the prompt. */
  readonly seqLen: number;
  /** The rank that the KV cache goes to. */
  readonly decodeRank: number;
}

/** Ends the prefill phase. Tag 31, prefill to router. */
export interface PrefillDone {
  readonly requestId: bigint;
  /** Bytes that went to the decode worker; 0 if the request was dropped. */
  readonly kvBytes: bigint;
}

/** Announces the payload that follows under the same tag. Tag 32, prefill to decode. */
export interface KvCacheHeader {
  readonly kvBytes: bigint;
}

/** Starts decoding. Tag 34, router to decode. */
export interface DecodeRequest {
  readonly requestId: bigint;
  readonly maxNewTokens: number;
}

/** Carries one token. Tag 35, decode to router. */
export interface DecodedToken {
  readonly requestId: bigint;
  readonly tokenId: bigint;
}

/** Ends an answer. Tag 36, decode to router. */
export interface DecodeDone {
  readonly requestId: bigint;
}

/** Says that a worker gives a request up. Tag 37, ours. */
export interface ErrorMessage {
  readonly requestId: bigint;
  /** One of `ERROR_CODES`, or a number of a later version. */
  readonly code: number;
  /** For people, 1,024 bytes of UTF-8 at most. */
  readonly text: string;
}

/** Asks a worker to forget a request. Tag 38, ours, router to prefill and decode. */
export interface CancelMessage {
  readonly requestId: bigint;
}

/** Encodes requestId u64 @0, seqLen u32 @8, decodeRank u32 @12. */
export function encodePrefillRequest(message: PrefillRequest): MessageBytes {
  const { bytes, view } = blank(PAIR_BYTES);
  view.setBigUint64(0, checkU64(message.requestId, "requestId"), true);
  view.setUint32(8, checkU32(message.seqLen, "seqLen"), true);
  view.setUint32(12, checkU32(message.decodeRank, "decodeRank"), true);
  return bytes;
}

export function decodePrefillRequest(bytes: Uint8Array): PrefillRequest {
  const view = open(bytes, "PrefillRequest", PAIR_BYTES);
  return {
    requestId: view.getBigUint64(0, true),
    seqLen: view.getUint32(8, true),
    decodeRank: view.getUint32(12, true),
  };
}

/** Encodes requestId u64 @0, kvBytes u64 @8. */
export function encodePrefillDone(message: PrefillDone): MessageBytes {
  const { bytes, view } = blank(PAIR_BYTES);
  view.setBigUint64(0, checkU64(message.requestId, "requestId"), true);
  view.setBigUint64(8, checkU64(message.kvBytes, "kvBytes"), true);
  return bytes;
}

export function decodePrefillDone(bytes: Uint8Array): PrefillDone {
  const view = open(bytes, "PrefillDone", PAIR_BYTES);
  return { requestId: view.getBigUint64(0, true), kvBytes: view.getBigUint64(8, true) };
}

/** Encodes kvBytes u64 @0. */
export function encodeKvCacheHeader(message: KvCacheHeader): MessageBytes {
  return encodeWord(message.kvBytes, "kvBytes");
}

export function decodeKvCacheHeader(bytes: Uint8Array): KvCacheHeader {
  return { kvBytes: open(bytes, "KvCacheHeader", WORD_BYTES).getBigUint64(0, true) };
}

/** Reads the position that decoding starts at: the first four bytes of a KV payload, 0 if it is shorter. */
export function kvStartPosition(payload: Uint8Array): number {
  checkBytes(payload, "KvCachePayload");
  return payload.length < 4 ? 0 : viewOf(payload).getUint32(0, true);
}

/** Encodes eight zero bytes. Tag 33, decode to prefill. */
export function encodeKvCacheAck(): MessageBytes {
  return blank(WORD_BYTES).bytes;
}

/** Checks the size of a KvCacheAck, which says nothing. */
export function decodeKvCacheAck(bytes: Uint8Array): void {
  open(bytes, "KvCacheAck", WORD_BYTES);
}

/** Encodes requestId u64 @0, maxNewTokens u32 @8 and four zero bytes. */
export function encodeDecodeRequest(message: DecodeRequest): MessageBytes {
  const { bytes, view } = blank(PAIR_BYTES);
  view.setBigUint64(0, checkU64(message.requestId, "requestId"), true);
  view.setUint32(8, checkU32(message.maxNewTokens, "maxNewTokens"), true);
  return bytes;
}

export function decodeDecodeRequest(bytes: Uint8Array): DecodeRequest {
  const view = open(bytes, "DecodeRequest", PAIR_BYTES);
  return { requestId: view.getBigUint64(0, true), maxNewTokens: view.getUint32(8, true) };
}

/** Encodes requestId u64 @0, tokenId i64 @8. */
export function encodeDecodedToken(message: DecodedToken): MessageBytes {
  const { bytes, view } = blank(PAIR_BYTES);
  view.setBigUint64(0, checkU64(message.requestId, "requestId"), true);
  view.setBigInt64(8, checkI64(message.tokenId, "tokenId"), true);
  return bytes;
}

export function decodeDecodedToken(bytes: Uint8Array): DecodedToken {
  const view = open(bytes, "DecodedToken", PAIR_BYTES);
  return { requestId: view.getBigUint64(0, true), tokenId: view.getBigInt64(8, true) };
}

/** Encodes requestId u64 @0. */
export function encodeDecodeDone(message: DecodeDone): MessageBytes {
  return encodeWord(message.requestId, "requestId");
}

export function decodeDecodeDone(bytes: Uint8Array): DecodeDone {
  return { requestId: open(bytes, "DecodeDone", WORD_BYTES).getBigUint64(0, true) };
}

/** Encodes one i64 a token. Tag 10, router to prefill. */
export function encodePromptTokens(tokens: BigInt64Array): MessageBytes {
  if (!(tokens instanceof BigInt64Array)) {
    throw new ArgumentTypeError(`Expected tokens as a BigInt64Array, got a value of type ${typeof tokens}.`);
  }
  const { bytes, view } = blank(TOKEN_BYTES * tokens.length);
  for (let at = 0; at < tokens.length; at++) view.setBigInt64(TOKEN_BYTES * at, tokens[at] as bigint, true);
  return bytes;
}

/** Decodes a prompt into memory of its own, as much as the message has. */
export function decodePromptTokens(bytes: Uint8Array): BigInt64Array<ArrayBuffer> {
  checkBytes(bytes, "prompt");
  if (bytes.length % TOKEN_BYTES !== 0) {
    throw new ProtocolError(`Expected a prompt of a multiple of ${TOKEN_BYTES} bytes, got ${bytes.length}.`);
  }
  const view = viewOf(bytes);
  const tokens = new BigInt64Array(bytes.length / TOKEN_BYTES);
  for (let at = 0; at < tokens.length; at++) tokens[at] = view.getBigInt64(TOKEN_BYTES * at, true);
  return tokens;
}

/** Encodes requestId u64 @0, code u32 @8, and the text from @12 to the end, cut between two characters if it is too long. */
export function encodeError(message: ErrorMessage): MessageBytes {
  if (typeof message.text !== "string") {
    throw new ArgumentTypeError(`Expected text to be a string, got a value of type ${typeof message.text}.`);
  }
  const { bytes, view } = blank(ERROR_BYTES_MAX);
  view.setBigUint64(0, checkU64(message.requestId, "requestId"), true);
  view.setUint32(8, checkU32(message.code, "code"), true);
  const { written } = new TextEncoder().encodeInto(message.text, bytes.subarray(ERROR_TEXT_OFFSET));
  return bytes.slice(0, ERROR_TEXT_OFFSET + written);
}

/** Decodes an Error. Bytes that are no UTF-8 become U+FFFD: the request has failed, whatever its text says. */
export function decodeError(bytes: Uint8Array): ErrorMessage {
  checkBytes(bytes, "Error");
  const textBytes = bytes.length - ERROR_TEXT_OFFSET;
  if (textBytes < 0 || textBytes > ERROR_TEXT_BYTES_MAX) {
    throw new ProtocolError(
      `Expected an Error of ${ERROR_TEXT_OFFSET} to ${ERROR_BYTES_MAX} bytes, got ${bytes.length}.`,
    );
  }
  const view = viewOf(bytes);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(ERROR_TEXT_OFFSET));
  return { requestId: view.getBigUint64(0, true), code: view.getUint32(8, true), text };
}

/** Encodes requestId u64 @0. */
export function encodeCancel(message: CancelMessage): MessageBytes {
  return encodeWord(message.requestId, "requestId");
}

export function decodeCancel(bytes: Uint8Array): CancelMessage {
  return { requestId: open(bytes, "Cancel", WORD_BYTES).getBigUint64(0, true) };
}

function encodeWord(value: bigint, name: string): MessageBytes {
  const { bytes, view } = blank(WORD_BYTES);
  view.setBigUint64(0, checkU64(value, name), true);
  return bytes;
}
