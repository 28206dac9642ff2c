import { TransportError } from "../errors.js";

// The ends of transports and of peers, in the same words everywhere.

export function closedError(rank: number, reason: string): TransportError {
  return new TransportError(
    "KVROUTE_TRANSPORT_CLOSED",
    `Expected rank ${rank} to be open, but it was closed: ${reason}.`,
  );
}

export function brokenError(rank: number, reason: string, cause?: unknown): TransportError {
  return new TransportError(
    "KVROUTE_TRANSPORT_BROKEN",
    `Expected rank ${rank} to be connected, but its connection broke: ${reason}.`,
    { cause },
  );
}

export function lostError(rank: number, reason: string): TransportError {
  return new TransportError(
    "KVROUTE_TRANSPORT_PEER_LOST",
    `Expected rank ${rank} to be there, but it went: ${reason}.`,
  );
}

export function unknownRankError(rank: number): TransportError {
  return new TransportError("KVROUTE_TRANSPORT_UNKNOWN_RANK", `Expected the rank of a connected peer, got ${rank}.`);
}

export function refusedError(message: string): TransportError {
  return new TransportError("KVROUTE_TRANSPORT_REFUSED", message);
}
