import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TransportError } from "../../src/errors.js";
import { MOST } from "../../src/transport/limits.js";
import {
  DATA_HEADER_BYTES,
  decodeFrame,
  encodeFrame,
  FRAME_VERSION,
  type Frame,
  patchEpoch,
  REASON_BYTES_MAX,
} from "../../src/transport/wire/frames.js";
import { scaled } from "../support/scale.js";

const u32 = fc.nat(2 ** 32 - 1);
const reason = fc.string({ unit: "grapheme", maxLength: 30 });
const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({ kind: fc.constant("hello" as const), rank: u32 }),
  fc.record({
    kind: fc.constant("welcome" as const),
    windowEnvelopes: u32,
    windowBytes: u32,
    maxEnvelopeBytes: u32,
    peers: fc.array(fc.record({ rank: u32, epoch: u32 }), { maxLength: 5 }),
  }),
  fc.record({ kind: fc.constantFrom("refused" as const, "bye" as const), reason }),
  fc.record({ kind: fc.constant("joined" as const), rank: u32, epoch: u32 }),
  fc.record({ kind: fc.constant("lost" as const), rank: u32, epoch: u32, reason }),
  fc.record({ kind: fc.constant("taken" as const), rank: u32, epoch: u32, envelopes: u32, bytes: u32 }),
  fc.record({
    kind: fc.constant("data" as const),
    epoch: u32,
    envelope: fc.record({
      source: u32,
      destination: u32,
      tag: u32,
      router: u32,
      requestId: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      sequence: u32,
      bytes: fc.uint8Array({ maxLength: 50 }).map((bytes) => new Uint8Array(bytes)),
    }),
  }),
);

const hexOf = (frame: Frame) => Buffer.from(encodeFrame(frame)).toString("hex");
const envelope = { source: 1, destination: 2, tag: 3, router: 4, requestId: 5n, sequence: 6, bytes: Uint8Array.of(7) };

describe("a frame", () => {
  test("decodes to what was encoded", () => {
    fc.assert(
      fc.property(frames, (frame) => {
        expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
      }),
      { numRuns: scaled(3_000) },
    );
  });

  test.each<[Frame, string]>([
    [{ kind: "hello", rank: 258 }, "4b56010102010000"],
    [
      { kind: "welcome", windowEnvelopes: 1, windowBytes: 2, maxEnvelopeBytes: 3, peers: [{ rank: 4, epoch: 5 }] },
      "4b560102010000000200000003000000" + "0400000005000000",
    ],
    [{ kind: "refused", reason: "no" }, "4b5601036e6f"],
    [{ kind: "joined", epoch: 1, rank: 2 }, "4b5601040100000002000000"],
    [{ kind: "lost", epoch: 1, rank: 2, reason: "é" }, "4b5601050100000002000000c3a9"],
    [
      { kind: "data", epoch: 9, envelope },
      "4b5601060900000001000000020000000300000004000000" + "0500000000000000" + "0600000000000000" + "07",
    ],
    [{ kind: "taken", epoch: 1, rank: 2, envelopes: 3, bytes: 4 }, "4b56010701000000020000000300000004000000"],
    [{ kind: "bye", reason: "" }, "4b560108"],
  ])("of kind $0.kind has the bytes of docs/transports.md", (frame, hex) => {
    expect(hexOf(frame)).toBe(hex);
  });

  test.each([
    [24, false],
    [25, true],
    [5_000, true],
  ])("of an envelope of %i bytes keeps them where they came: %s", (size, stays) => {
    const bytes = encodeFrame({
      kind: "data",
      epoch: 1,
      envelope: { ...envelope, bytes: new Uint8Array(size).fill(3) },
    });
    const decoded = decodeFrame(bytes) as Extract<Frame, { kind: "data" }>;
    expect(decoded.envelope.bytes).toEqual(new Uint8Array(size).fill(3));
    expect(decoded.envelope.bytes.buffer === bytes.buffer).toBe(stays);
    if (stays) expect(decoded.envelope.bytes.byteOffset).toBe(DATA_HEADER_BYTES);
  });

  test("is passed on with another epoch and nothing else changed", () => {
    const bytes = encodeFrame({ kind: "data", epoch: 1, envelope });
    patchEpoch(bytes, 2 ** 32 - 1);
    expect(decodeFrame(bytes)).toEqual({ kind: "data", epoch: 2 ** 32 - 1, envelope });
  });

  test("cuts a reason that is too long between two characters", () => {
    const decoded = decodeFrame(encodeFrame({ kind: "bye", reason: `x${"ä".repeat(REASON_BYTES_MAX)}` }));
    expect(decoded).toEqual({ kind: "bye", reason: `x${"ä".repeat((REASON_BYTES_MAX - 2) / 2)}` });
  });
});

describe("what is no frame", () => {
  const refusal = expect.objectContaining({ code: "KVROUTE_TRANSPORT_FRAME" });
  /** The sizes that a kind can have, up to 64. */
  const sizes: Record<number, (size: number) => boolean> = {
    1: (size) => size === 8,
    2: (size) => size >= 16 && size % 8 === 0,
    3: (size) => size >= 4,
    4: (size) => size === 12,
    5: (size) => size >= 12,
    6: (size) => size >= 40,
    7: (size) => size === 20,
    8: (size) => size >= 4,
  };

  test("every kind is refused at every size from 0 to 64 that it cannot have", () => {
    for (let kind = 0; kind < 256; kind++) {
      for (let size = 0; size <= 64; size++) {
        const bytes = new Uint8Array(size);
        bytes.set([0x4b, 0x56, FRAME_VERSION, kind].slice(0, size));
        if (sizes[kind]?.(size)) decodeFrame(bytes);
        else expect(() => decodeFrame(bytes)).toThrow(refusal);
      }
    }
  });

  test.each(["refused", "lost", "bye"] as const)("a %s frame with a longer reason than may be is refused", (kind) => {
    const text = "x".repeat(REASON_BYTES_MAX);
    const longest = encodeFrame({ kind, reason: text, epoch: 1, rank: 1 } as Frame);
    expect(decodeFrame(longest)).toMatchObject({ reason: text });
    expect(() => decodeFrame(new Uint8Array([...longest, 120]))).toThrow(refusal);
  });

  test("a welcome frame with more peers than a hub can have is refused before any is read", () => {
    const most = new Uint8Array(16 + 8 * MOST.maxRanks);
    most.set([0x4b, 0x56, FRAME_VERSION, 2]);
    expect(decodeFrame(most)).toMatchObject({ peers: { length: MOST.maxRanks } });
    const more = new Uint8Array(most.length + 8);
    more.set(most);
    expect(() => decodeFrame(more)).toThrow(refusal);
  });

  test("another beginning and another version are refused, each with what came", () => {
    const bytes = encodeFrame({ kind: "hello", rank: 1 });
    const other = bytes.slice();
    other[0] = 0x47;
    expect(() => decodeFrame(other)).toThrow("Expected a frame that begins with KV, got another beginning.");
    bytes[2] = 2;
    expect(() => decodeFrame(bytes)).toThrow("Expected version 1 of the framing, got version 2.");
  });

  test("whatever the bytes are, decoding answers or throws a TransportError, and allocates no more than they hold", () => {
    const header = fc
      .tuple(fc.constantFrom(1, 1, 1, 2), fc.nat(10))
      .map(([version, kind]) => [0x4b, 0x56, version, kind]);
    const hostile = fc.tuple(fc.oneof(header, fc.constant([])), fc.uint8Array({ maxLength: 64 }));
    fc.assert(
      fc.property(hostile, ([start, rest]) => {
        try {
          const frame = decodeFrame(new Uint8Array([...start, ...rest]));
          if (frame.kind === "data") expect(frame.envelope.bytes.length).toBeLessThanOrEqual(rest.length);
          if (frame.kind === "welcome") expect(8 * frame.peers.length).toBeLessThanOrEqual(rest.length);
        } catch (error) {
          expect(error).toBeInstanceOf(TransportError);
        }
      }),
      { numRuns: scaled(5_000) },
    );
  });
});
