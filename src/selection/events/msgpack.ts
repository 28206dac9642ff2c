import { decode } from "@msgpack/msgpack";
import { KvEventError } from "../../errors.js";

/** Levels of lists and maps that a payload may have: the deepest known event needs seven. */
export const DEPTH_MAX = 16;

/**
 * Reads a payload that is exactly one msgpack value; 64-bit integers come out as bigint, bytes as a view of the payload.
 *
 * The payload is walked before it is decoded, since a decoder makes room for as many values as a header claims.
 *
 * @throws {KvEventError} `KVROUTE_KV_EVENT_PAYLOAD` if it is not msgpack, cut off, longer than its value, or too deep
 */
export function readMsgpack(payload: Uint8Array): unknown {
  const end = new Walk(payload).skip(0, 0);
  if (end !== payload.length) {
    throw payloadError(`Expected a payload of one value, which ends at byte ${end}, got ${payload.length} bytes.`);
  }
  try {
    return decode(payload, { useBigInt64: true });
  } catch (cause) {
    throw payloadError("Expected a payload that msgpack can decode, got one that it refuses.", cause);
  }
}

/** Walks over values without making any. */
class Walk {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Gives the position behind the value at `at`. */
  skip(at: number, depth: number): number {
    const head = this.#bytes[at];
    if (head === undefined) throw this.#cutOff(at);
    if (head < 0x80 || head >= 0xe0) return at + 1; // small integers
    if (head < 0x90) return this.#skipAll(at + 1, 2 * (head & 0x0f), depth);
    if (head < 0xa0) return this.#skipAll(at + 1, head & 0x0f, depth);
    if (head < 0xc0) return this.#skipBytes(at + 1, head & 0x1f);
    return this.#skipLong(at, head, depth);
  }

  #skipLong(at: number, head: number, depth: number): number {
    const [form, size] = FORMS[head - 0xc0] ?? NO_FORM;
    if (form === "none")
      throw payloadError(`Expected msgpack, got the unused head 0x${head.toString(16)} at byte ${at}.`);
    if (form === "fixed") return this.#skipBytes(at + 1, size);
    const body = this.#skipBytes(at + 1, size);
    const length = this.#readLength(at + 1, size);
    if (form === "bytes") return this.#skipBytes(body, length);
    if (form === "typed") return this.#skipBytes(body, length + 1);
    return this.#skipAll(body, form === "map" ? 2 * length : length, depth);
  }

  #skipAll(at: number, count: number, depth: number): number {
    if (depth === DEPTH_MAX) {
      throw payloadError(`Expected at most ${DEPTH_MAX} levels of lists and maps, got one more at byte ${at}.`);
    }
    let position = at;
    for (let i = 0; i < count; i++) position = this.skip(position, depth + 1);
    return position;
  }

  #skipBytes(at: number, count: number): number {
    if (count > this.#bytes.length - at) throw this.#cutOff(at);
    return at + count;
  }

  #readLength(at: number, size: number): number {
    if (size === 1) return this.#view.getUint8(at);
    return size === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #cutOff(at: number): KvEventError {
    return payloadError(`Expected more behind byte ${at}, got a payload that ends after ${this.#bytes.length} bytes.`);
  }
}

/** What stands behind a head: so many bytes, or a length of so many bytes and then bytes, type and bytes, or values. */
type Form = readonly [form: "none" | "fixed" | "bytes" | "typed" | "list" | "map", size: number];

const NO_FORM: Form = ["none", 0];

/** Of the heads 0xc0 to 0xdf. */
const FORMS: readonly Form[] = [
  ["fixed", 0], // nil
  NO_FORM,
  ["fixed", 0], // false
  ["fixed", 0], // true
  ["bytes", 1],
  ["bytes", 2],
  ["bytes", 4],
  ["typed", 1],
  ["typed", 2],
  ["typed", 4],
  ["fixed", 4], // float
  ["fixed", 8],
  ["fixed", 1], // unsigned
  ["fixed", 2],
  ["fixed", 4],
  ["fixed", 8],
  ["fixed", 1], // signed
  ["fixed", 2],
  ["fixed", 4],
  ["fixed", 8],
  ["fixed", 2], // type and 1 to 16 bytes
  ["fixed", 3],
  ["fixed", 5],
  ["fixed", 9],
  ["fixed", 17],
  ["bytes", 1], // text
  ["bytes", 2],
  ["bytes", 4],
  ["list", 2],
  ["list", 4],
  ["map", 2],
  ["map", 4],
];

function payloadError(message: string, cause?: unknown): KvEventError {
  return new KvEventError("KVROUTE_KV_EVENT_PAYLOAD", message, { cause });
}
