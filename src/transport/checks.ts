import { ArgumentRangeError, ArgumentTypeError, TransportError } from "../errors.js";
import type { Envelope } from "./types.js";

const U32_MAX = 2 ** 32 - 1;
const U64_MAX = 2n ** 64n - 1n;

/** The longest delay that every runtime's timers take. */
const DELAY_MAX_MS = 2 ** 31 - 1;

export function checkDelay(value: unknown, name: string): number {
  const delayMs = checkU32(value, name);
  if (delayMs >= 1 && delayMs <= DELAY_MAX_MS) return delayMs;
  throw new ArgumentRangeError(`Expected ${name} to be from 1 to ${DELAY_MAX_MS} milliseconds, got ${delayMs}.`);
}

export function checkU32(value: unknown, name: string): number {
  return checkWhole(value, name, 0, U32_MAX);
}

/** Checks a whole number. */
export function checkWhole(value: unknown, name: string, least: number, most: number): number {
  if (typeof value !== "number") {
    throw new ArgumentTypeError(`Expected ${name} to be a number, got a value of type ${typeof value}.`);
  }
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new ArgumentRangeError(`Expected ${name} to be a whole number from ${least} to ${most}, got ${value}.`);
}

/** Checks what a caller wants to send, and makes the envelope that travels. */
export function sealed(source: number, outgoing: Omit<Envelope, "source">, maxEnvelopeBytes: number): Envelope {
  const { destination, tag, router, requestId, sequence, bytes } = outgoing;
  checkU32(destination, "destination");
  checkU32(tag, "tag");
  checkU32(router, "router");
  checkU32(sequence, "sequence");
  checkRequestId(requestId);
  if (!(bytes instanceof Uint8Array)) {
    throw new ArgumentTypeError(`Expected bytes to be a Uint8Array, got a value of type ${typeof bytes}.`);
  }
  if (bytes.length > maxEnvelopeBytes) {
    throw new TransportError(
      "KVROUTE_TRANSPORT_TOO_LARGE",
      `Expected an envelope of at most ${maxEnvelopeBytes} bytes, the transport's maxEnvelopeBytes, got ${bytes.length}.`,
    );
  }
  return { source, destination, tag, router, requestId, sequence, bytes };
}

function checkRequestId(requestId: unknown): void {
  if (typeof requestId !== "bigint") {
    throw new ArgumentTypeError(`Expected requestId to be a bigint, got a value of type ${typeof requestId}.`);
  }
  if (requestId >= 0n && requestId <= U64_MAX) return;
  throw new ArgumentRangeError(`Expected requestId to be from 0 to ${U64_MAX}, got ${requestId}.`);
}
