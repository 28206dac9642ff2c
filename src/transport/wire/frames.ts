import { TransportError } from "../../errors.js";
import { MOST } from "../limits.js";
import type { Envelope } from "../types.js";

// What crosses a pipe: frames, one a message of the channel beneath. docs/transports.md has the tables.
//
//     0     2   3    4
//     ├ KV ─┼ 1 ┼kind┼─ fields, little-endian ─▶
//
// A rank that comes back is another peer: whoever names a peer also gives its epoch, the number of its connection.

/** A frame, ready to be handed to a pipe, which owns its memory from then on. */
export type FrameBytes = Uint8Array<ArrayBuffer>;

/** A peer, and which of its connections. */
export interface PeerId {
  readonly rank: number;
  readonly epoch: number;
}

/** The limits of a hub, which hold for all that are connected to it. */
export interface FrameLimits {
  readonly windowEnvelopes: number;
  readonly windowBytes: number;
  readonly maxEnvelopeBytes: number;
}

export type Frame =
  /** End to hub, first: asks to be connected under a rank. */
  | { readonly kind: "hello"; readonly rank: number }
  /** Hub to end, in answer: the limits, and who is there, the end itself among them. */
  | ({ readonly kind: "welcome"; readonly peers: readonly PeerId[] } & FrameLimits)
  /** Hub to end, in answer: the end is not connected. */
  | { readonly kind: "refused"; readonly reason: string }
  | ({ readonly kind: "joined" } & PeerId)
  | ({ readonly kind: "lost"; readonly reason: string } & PeerId)
  /** Either way: an envelope. `epoch` is the destination's on the way to the hub, the source's on the way from it. */
  | { readonly kind: "data"; readonly epoch: number; readonly envelope: Envelope }
  /** Either way: envelopes were taken; to the hub it names who sent them, from the hub who took them. */
  | ({ readonly kind: "taken"; readonly envelopes: number; readonly bytes: number } & PeerId)
  /** Either way, last: the other side closes. */
  | { readonly kind: "bye"; readonly reason: string };

export const FRAME_VERSION = 1;
const MAGIC = [0x4b, 0x56] as const; // "KV"
const EPOCH_OFFSET = 4;

/** Bytes of a data frame before those of the envelope. */
export const DATA_HEADER_BYTES = 40;

/** Bytes of the UTF-8 text of a reason; the rest is cut off. */
export const REASON_BYTES_MAX = 256;

const PEER_BYTES = 8;
const PEERS_BYTES_MAX = PEER_BYTES * MOST.maxRanks;
const U32_MASK = 0xffff_ffffn;

/** Arrays of so few bytes have no buffer of their own until they are asked for it. */
const SMALL_BYTES = 64;

/** The number of each kind, the bytes before its variable part, and what one unit of that has (0: there is none). */
const KINDS: Record<Frame["kind"], { readonly id: number; readonly fixed: number; readonly unit: number }> = {
  hello: { id: 1, fixed: 8, unit: 0 },
  welcome: { id: 2, fixed: 16, unit: PEER_BYTES },
  refused: { id: 3, fixed: 4, unit: 1 },
  joined: { id: 4, fixed: 12, unit: 0 },
  lost: { id: 5, fixed: 12, unit: 1 },
  data: { id: 6, fixed: DATA_HEADER_BYTES, unit: 1 },
  taken: { id: 7, fixed: 20, unit: 0 },
  bye: { id: 8, fixed: 4, unit: 1 },
};
const KIND_OF_ID = new Map(Object.entries(KINDS).map(([kind, { id }]) => [id, kind as Frame["kind"]]));

export function encodeFrame(frame: Frame): FrameBytes {
  switch (frame.kind) {
    case "hello":
      return words("hello", [frame.rank]);
    case "welcome": {
      const limits = [frame.windowEnvelopes, frame.windowBytes, frame.maxEnvelopeBytes];
      return words("welcome", [...limits, ...frame.peers.flatMap((peer) => [peer.rank, peer.epoch])]);
    }
    case "joined":
      return words("joined", [frame.epoch, frame.rank]);
    case "taken":
      return words("taken", [frame.epoch, frame.rank, frame.envelopes, frame.bytes]);
    case "lost":
      return words("lost", [frame.epoch, frame.rank], frame.reason);
    case "refused":
    case "bye":
      return words(frame.kind, [], frame.reason);
    case "data":
      return encodeData(frame.epoch, frame.envelope);
  }
}

/** Encodes an envelope, with the epoch of the peer at the other end. */
export function encodeData(epoch: number, envelope: Envelope): FrameBytes {
  const bytes = start("data", DATA_HEADER_BYTES + envelope.bytes.length);
  setU32(bytes, EPOCH_OFFSET, epoch);
  setU32(bytes, 8, envelope.source);
  setU32(bytes, 12, envelope.destination);
  setU32(bytes, 16, envelope.tag);
  setU32(bytes, 20, envelope.router);
  setU32(bytes, 24, Number(envelope.requestId & U32_MASK));
  setU32(bytes, 28, Number(envelope.requestId >> 32n));
  setU32(bytes, 32, envelope.sequence);
  bytes.set(envelope.bytes, DATA_HEADER_BYTES);
  return bytes;
}

/** Overwrites the epoch of a data frame, which a hub passes on with that of the source. */
export function patchEpoch(data: FrameBytes, epoch: number): void {
  setU32(data, EPOCH_OFFSET, epoch);
}

/**
 * Decodes a frame. The bytes of an envelope stay where they are, but for a few; nothing is allocated beyond what the frame
 * holds.
 *
 * @throws {TransportError} `KVROUTE_TRANSPORT_FRAME`
 */
export function decodeFrame(bytes: FrameBytes): Frame {
  if (bytes.length < 4) throw frameError(`Expected a frame of 4 bytes or more, got ${bytes.length}`);
  if (bytes[0] !== MAGIC[0] || bytes[1] !== MAGIC[1]) {
    throw frameError("Expected a frame that begins with KV, got another beginning");
  }
  if (bytes[2] !== FRAME_VERSION) {
    throw frameError(`Expected version ${FRAME_VERSION} of the framing, got version ${bytes[2]}`);
  }
  const kind = KIND_OF_ID.get(bytes[3] as number);
  if (kind === undefined) throw frameError(`Expected a kind of frame from 1 to ${KIND_OF_ID.size}, got ${bytes[3]}`);
  checkSize(kind, bytes.length);
  return decodeBody(kind, bytes);
}

function decodeBody(kind: Frame["kind"], bytes: FrameBytes): Frame {
  const word = (offset: number) => u32(bytes, offset);
  switch (kind) {
    case "hello":
      return { kind, rank: word(4) };
    case "welcome":
      return {
        kind,
        windowEnvelopes: word(4),
        windowBytes: word(8),
        maxEnvelopeBytes: word(12),
        peers: peersOf(bytes),
      };
    case "joined":
      return { kind, epoch: word(4), rank: word(8) };
    case "taken":
      return { kind, epoch: word(4), rank: word(8), envelopes: word(12), bytes: word(16) };
    case "lost":
      return { kind, epoch: word(4), rank: word(8), reason: textOf(bytes.subarray(12)) };
    case "refused":
    case "bye":
      return { kind, reason: textOf(bytes.subarray(4)) };
    case "data":
      return { kind, epoch: word(EPOCH_OFFSET), envelope: envelopeOf(bytes) };
  }
}

function envelopeOf(bytes: FrameBytes): Envelope {
  return {
    source: u32(bytes, 8),
    destination: u32(bytes, 12),
    tag: u32(bytes, 16),
    router: u32(bytes, 20),
    requestId: (BigInt(u32(bytes, 28)) << 32n) | BigInt(u32(bytes, 24)),
    sequence: u32(bytes, 32),
    bytes: bytes.length <= SMALL_BYTES ? bytes.slice(DATA_HEADER_BYTES) : bytes.subarray(DATA_HEADER_BYTES),
  };
}

function peersOf(bytes: FrameBytes): PeerId[] {
  const peers: PeerId[] = [];
  for (let offset = KINDS.welcome.fixed; offset < bytes.length; offset += PEER_BYTES) {
    peers.push({ rank: u32(bytes, offset), epoch: u32(bytes, offset + 4) });
  }
  return peers;
}

function checkSize(kind: Frame["kind"], size: number): void {
  const { fixed, unit } = KINDS[kind];
  const rest = size - fixed;
  const most = kind === "data" ? size : kind === "welcome" ? PEERS_BYTES_MAX : REASON_BYTES_MAX;
  const fits = unit === 0 ? rest === 0 : rest >= 0 && rest % unit === 0 && rest <= most;
  if (!fits) throw frameError(`Expected a ${kind} frame of a size that it can have, got ${size} bytes`);
}

function start(kind: Frame["kind"], size: number): FrameBytes {
  const bytes = new Uint8Array(size);
  bytes[0] = MAGIC[0];
  bytes[1] = MAGIC[1];
  bytes[2] = FRAME_VERSION;
  bytes[3] = KINDS[kind].id;
  return bytes;
}

// Byte by byte, without a DataView: V8 keeps small arrays beside its objects until somebody asks for their buffer, and
// to make one takes as long as all the rest of a small frame.

function setU32(bytes: FrameBytes, offset: number, value: number): void {
  bytes[offset] = value;
  bytes[offset + 1] = value >>> 8;
  bytes[offset + 2] = value >>> 16;
  bytes[offset + 3] = value >>> 24;
}

function u32(bytes: FrameBytes, offset: number): number {
  const low = (bytes[offset] as number) | ((bytes[offset + 1] as number) << 8);
  return (low | ((bytes[offset + 2] as number) << 16) | ((bytes[offset + 3] as number) << 24)) >>> 0;
}

/** Makes a frame of 32-bit fields and a text after them. */
function words(kind: Frame["kind"], values: readonly number[], text = ""): FrameBytes {
  const offset = 4 + 4 * values.length;
  const bytes = start(kind, offset + (text === "" ? 0 : REASON_BYTES_MAX));
  for (const [index, value] of values.entries()) setU32(bytes, 4 + 4 * index, value);
  if (text === "") return bytes;
  const { written } = new TextEncoder().encodeInto(text, bytes.subarray(offset));
  return bytes.slice(0, offset + written);
}

/** Reads a text that people may see; bytes that are no UTF-8 become U+FFFD. */
function textOf(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

export function frameError(problem: string, cause?: unknown): TransportError {
  return new TransportError("KVROUTE_TRANSPORT_FRAME", `${problem}.`, { cause });
}
