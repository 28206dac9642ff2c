import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DecodeWorker, type PrefillWorker, TAGS } from "../../src/disagg/index.js";
import { scaled } from "../support/scale.js";
import { quiet } from "./router-clock.js";
import { answerTo } from "./router-model.js";
import { Stage } from "./router-stage.js";

// Hostile ranks, which nobody has told of: one that is no party to anything, and one that claims to be a router.
const STRANGER = 8;
const FALSE_ROUTER = 9;

const HELD_BYTES = 512;
const PENDING = 4;
const WAITING = 3;

interface Shot {
  readonly source: number;
  readonly destination: number;
  readonly tag: number;
  readonly router: number;
  readonly requestId: bigint;
  readonly sequence: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Bytes of every length up to 64: random ones, and the extremes of what sizes and ids can say. */
const bytes = fc
  .tuple(
    fc.integer({ min: 0, max: 64 }),
    fc.oneof(
      fc.constantFrom(0, 255).map((byte) => () => byte),
      fc.infiniteStream(fc.integer({ min: 0, max: 255 })).map((stream) => () => stream.next().value as number),
    ),
  )
  .map(([length, next]) => Uint8Array.from({ length }, next));

const shots: fc.Arbitrary<Shot> = fc.record({
  source: fc.constantFrom(STRANGER, FALSE_ROUTER),
  destination: fc.constantFrom(0, 1, 2),
  tag: fc.oneof(fc.constantFrom(...Object.values(TAGS)), fc.nat(), fc.constant(2 ** 32 - 1)),
  router: fc.constantFrom(0, FALSE_ROUTER, 1, 2),
  requestId: fc.oneof(fc.bigInt(0n, 12n), fc.constantFrom(2n ** 64n - 1n, 2n ** 63n)),
  sequence: fc.oneof(fc.nat(3), fc.constant(2 ** 32 - 1)),
  bytes,
});

function hostileStage() {
  const limits = {
    maxHeldBytes: HELD_BYTES,
    maxPending: PENDING,
    maxWaiting: WAITING,
    maxRemembered: 8,
    maxNotices: 16,
  };
  const stage = new Stage({
    router: { firstRequestId: 1_000n, maxReordered: 4 },
    prefillWorker: { ...limits, pendingMs: 1_000, ackTimeoutMs: 1_000, sendTimeoutMs: 1_000 },
    decodeWorker: { ...limits, orphanKvMs: 1_000 },
  });
  const strangers = [STRANGER, FALSE_ROUTER].map((rank) => stage.network.connect(rank));
  const shoot = ({ source, ...envelope }: Shot) => strangers[source - STRANGER]?.send(envelope).catch(() => {});
  return { stage, shoot };
}

function expectWithinLimits(worker: PrefillWorker | DecodeWorker): void {
  const { heldBytes, pending, waiting, notices } = worker.stats();
  expect(heldBytes).toBeLessThanOrEqual(HELD_BYTES);
  expect(pending).toBeLessThanOrEqual(PENDING);
  expect(waiting).toBeLessThanOrEqual(WAITING);
  expect(notices).toBeLessThanOrEqual(16);
}

/** Shoots, and checks that everybody keeps to the limits, goes on, and is at rest afterwards. */
async function endure(salvo: readonly Shot[]): Promise<void> {
  const { stage, shoot } = hostileStage();
  const tokens = BigInt64Array.of(1n, 2n, 3n);
  const honest = stage.router.collect({ tokens, maxNewTokens: 6 });
  for (const shot of salvo) {
    await shoot(shot);
    for (const worker of [stage.prefillWorker, stage.decodeWorker]) expectWithinLimits(worker);
  }
  expect(await stage.clock.value(honest)).toEqual(answerTo(tokens, 6));
  await stage.clock.pass(10_000);
  stage.expectRest();
  expect(await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 6 }))).toEqual(answerTo(tokens, 6));
}

describe("whatever strangers send", () => {
  test("nobody crashes, holds more than its limits, or answers an honest request wrong", async () => {
    await fc.assert(fc.asyncProperty(fc.array(shots, { minLength: 1, maxLength: 40 }), endure), {
      numRuns: scaled(400),
    });
  });

  test("every tag with every length from 0 to 64, all bits clear and all bits set", async () => {
    for (const tag of [...Object.values(TAGS), 0, 39]) {
      const salvo: Shot[] = [];
      for (let length = 0; length <= 64; length++) {
        for (const byte of [0, 255]) {
          for (const destination of [0, 1, 2]) {
            const requestId = BigInt(salvo.length);
            const bytes = new Uint8Array(length).fill(byte);
            salvo.push({ source: FALSE_ROUTER, destination, tag, router: FALSE_ROUTER, requestId, sequence: 0, bytes });
          }
        }
      }
      await endure(salvo);
    }
  });

  test("sizes that are announced make nobody allocate", async () => {
    const { stage, shoot } = hostileStage();
    const before = process.memoryUsage().arrayBuffers;
    const all = new Uint8Array(16).fill(255);
    const to = { source: FALSE_ROUTER, router: FALSE_ROUTER, sequence: 0 };
    for (let at = 0; at < 1_000; at++) {
      const requestId = BigInt(at);
      all[0] = at;
      await shoot({ ...to, destination: 1, tag: TAGS.prefillRequest, requestId, bytes: all.slice() });
      await shoot({ ...to, destination: 1, tag: TAGS.promptTokens, requestId, bytes: new Uint8Array(8) });
      await shoot({ ...to, destination: 2, tag: TAGS.kvCache, requestId, bytes: all.slice(0, 8) });
      await shoot({ ...to, destination: 2, tag: TAGS.decodeRequest, requestId, bytes: all.slice() });
    }
    await quiet();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * 2 ** 20); // 2^32 tokens, 2^64 bytes were said
    for (const worker of [stage.prefillWorker, stage.decodeWorker]) expectWithinLimits(worker);
  });
});
