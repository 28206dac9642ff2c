import { describe, expect, test } from "vitest";
import { DONE_SENTINEL, EOS_TOKEN, ERROR_CODES, TAGS } from "../../src/disagg/index.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import { quiet } from "./router-clock.js";
import { endless, expectIdle, never } from "./router-stage.js";
import { answerOf, DECODE, decodeStage, ROUTER } from "./workers-stage.js";

const { failed, busy, tooLarge, kvMissing, badMessage } = ERROR_CODES;
const kv = (...bytes: number[]) => Uint8Array.from(bytes);

describe("a KV cache", () => {
  test("is acknowledged when both messages are there, and held until it is claimed", async () => {
    const stage = decodeStage(endless);
    await stage.giveKv(1n, kv(7, 0, 0, 0, 9));
    expect(stage.other.of(TAGS.kvCacheAck)).toHaveLength(1);
    expect(stage.worker.stats()).toMatchObject({ pending: 1, heldBytes: 5 });
    await stage.askDecode(1n, 2);
    expect(answerOf(stage)).toEqual({ tokens: [7n, 8n], isDone: true });
    expectIdle(stage.worker);
    expect(stage.clock.timers).toBe(0);
  });

  test("is whole whichever of its messages comes first, also if the payload has eight bytes, too", async () => {
    const stage = decodeStage(endless);
    const to = { destination: DECODE, tag: TAGS.kvCache, requestId: 1n };
    await stage.other.say({ ...to, sequence: 1, bytes: kv(9, 0, 0, 0, 0, 0, 0, 0) });
    await stage.other.say({ ...to, sequence: 0, bytes: kv(8, 0, 0, 0, 0, 0, 0, 0) });
    await stage.askDecode(1n, 1);
    expect(answerOf(stage)).toEqual({ tokens: [9n], isDone: true });
  });

  test.each([
    [orphan(30_000), undefined],
    [orphan(100), 100],
  ])("%s", async (_, orphanKvMs) => {
    const stage = decodeStage({ orphanKvMs });
    await stage.giveKv(1n, kv(1, 2));
    await stage.clock.pass((orphanKvMs ?? 30_000) - 1);
    expect(stage.worker.stats()).toMatchObject({ pending: 1, heldBytes: 2, expired: 0 });
    await stage.clock.pass(1);
    expect(stage.worker.stats()).toMatchObject({ expired: 1 });
    expectIdle(stage.worker);
    await stage.askDecode(1n, 1);
    await stage.askDecode(1n, 1);
    expect(stage.router.errors).toEqual([kvMissing]); // once: who asks at all does not know
    expect(stage.worker.stats().strays).toBe(2);
  });

  function orphan(ms: number): string {
    return `that nobody claims is dropped and counted after ${ms} ms`;
  }

  test.each<[string, number, Parameters<typeof decodeStage>[0], number?]>([
    ["more bytes than maxKvBytes", tooLarge, { maxKvBytes: 2 }],
    ["more bytes than maxHeldBytes leaves", busy, { maxHeldBytes: 2 }],
    ["other bytes than were announced", badMessage, {}, 4],
    ["a hostile announcement", tooLarge, {}, 2 ** 53 - 1],
  ])("%s is an Error to the prefill worker", async (_, code, options, announced) => {
    const stage = decodeStage(options);
    await stage.giveKv(1n, kv(1, 2, 3), announced);
    expect(stage.other.errors).toEqual([code]);
    expect(stage.other.of(TAGS.kvCacheAck)).toEqual([]);
    expectIdle(stage.worker);
  });

  test("waits for its claim from when it is whole, not from its first message", async () => {
    const stage = decodeStage({ orphanKvMs: 100 });
    const to = { destination: DECODE, tag: TAGS.kvCache, requestId: 1n };
    await stage.other.say({ ...to, sequence: 0, bytes: kv(1, 0, 0, 0, 0, 0, 0, 0) });
    await stage.clock.pass(60);
    await stage.other.say({ ...to, sequence: 1, bytes: kv(1) });
    await stage.clock.pass(99);
    expect(stage.worker.stats()).toMatchObject({ pending: 1, expired: 0 });
    await stage.clock.pass(1);
    expect(stage.worker.stats()).toMatchObject({ pending: 0, expired: 1 });
  });

  test("at the limits of its size is taken", async () => {
    const stage = decodeStage({ maxKvBytes: 3, maxHeldBytes: 3 });
    await stage.giveKv(1n, kv(1, 2, 3));
    expect(stage.other.of(TAGS.kvCacheAck)).toHaveLength(1);
  });

  test("maxPending KV caches wait, one more is refused as busy", async () => {
    const stage = decodeStage({ maxPending: 2 });
    for (const id of [1n, 2n, 3n]) await stage.giveKv(id, kv(1));
    expect(stage.worker.stats()).toMatchObject({ pending: 2, refused: 1, heldBytes: 2 });
    expect(stage.other.errors).toEqual([busy]);
  });

  test("that came is worth as much when the prefill worker is gone", async () => {
    const stage = decodeStage(endless);
    await stage.giveKv(1n, kv(5, 0, 0, 0));
    stage.network.disconnect(1);
    await stage.askDecode(1n, 1);
    expect(answerOf(stage).tokens).toEqual([5n]);
  });

  test("comes from one worker: what another says about it is dropped", async () => {
    const stage = decodeStage();
    await stage.giveKv(1n, kv(1));
    await stage.router.say({ destination: DECODE, tag: TAGS.kvCache, sequence: 0, bytes: kv(1, 0, 0, 0, 0, 0, 0, 0) });
    await stage.other.say({ destination: DECODE, tag: TAGS.kvCache, sequence: 2, bytes: kv(1, 0, 0, 0, 0, 0, 0, 0) });
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ pending: 1, strays: 2 });
  });
});

describe("an answer", () => {
  test.each([DONE_SENTINEL, EOS_TOKEN])("ends with %s, which is sent", async (end) => {
    const decodeStep = (_kv: Uint8Array, _last: bigint, position: number) => (position < 2 ? 5n : end);
    const stage = decodeStage({ decodeStep });
    await stage.giveKv(1n, kv(0, 0, 0));
    await stage.askDecode(1n, 9);
    expect(answerOf(stage)).toEqual({ tokens: [5n, 5n, end], isDone: true });
  });

  test("goes on with the KV cache and the token of the step before", async () => {
    const seen: unknown[] = [];
    const stage = decodeStage({
      decodeStep: (cache, last, position) => {
        seen.push([cache.length, last, position]);
        return { token: BigInt(40 + position), kv: new Uint8Array(cache.length + 1) };
      },
    });
    await stage.giveKv(1n, kv(1, 0, 0, 0));
    await stage.askDecode(1n, 3);
    expect(seen).toEqual([
      [4, 0n, 1],
      [5, 41n, 2],
      [6, 42n, 3],
    ]);
    expectIdle(stage.worker);
  });

  test.each<[string, number, number, Parameters<typeof decodeStage>[0]]>([
    ["a step that throws", failed, 1, { decodeStep: throwsAt(1) }],
    ["a step that gives no token", failed, 0, { decodeStep: () => 5 as unknown as bigint }],
    ["a token that is no i64", failed, 0, { decodeStep: () => 2n ** 63n }],
    ["a KV cache that grows beyond maxKvBytes", tooLarge, 1, { maxKvBytes: 2, decodeStep: grow }],
    ["a KV cache that grows beyond maxHeldBytes", busy, 1, { maxHeldBytes: 2, decodeStep: grow }],
  ])("%s is an Error behind the tokens before", async (_, code, tokens, options) => {
    const stage = decodeStage(options);
    await stage.giveKv(1n, kv(0));
    await stage.askDecode(1n, 9);
    expect(answerOf(stage).tokens).toHaveLength(tokens);
    expect(stage.router.errors).toEqual([code]);
    expect(stage.router.of(TAGS.error)[0]?.sequence).toBe(tokens);
    expect(stage.worker.stats().failed).toBe(1);
    expectIdle(stage.worker);
  });

  function throwsAt(position: number) {
    return (_kv: Uint8Array, _last: bigint, at: number) => {
      if (at === position) throw new Error("no");
      return 5n;
    };
  }

  function grow(cache: Uint8Array) {
    return { token: 5n, kv: new Uint8Array(cache.length + 1) };
  }

  test("without a KV cache, or with half of one, is an Error", async () => {
    const stage = decodeStage();
    await stage.askDecode(1n, 9);
    await stage.other.say({ destination: DECODE, tag: TAGS.kvCache, requestId: 2n, sequence: 1, bytes: kv(1, 2) });
    await stage.askDecode(2n, 9);
    expect(stage.router.errors).toEqual([kvMissing, kvMissing]);
    expectIdle(stage.worker);
  });

  test("may have maxNewTokens tokens, and no more can be asked for", async () => {
    const stage = decodeStage({ ...endless, maxNewTokens: 3 });
    for (const [id, most] of [
      [1n, 3],
      [2n, 4],
    ] as const) {
      await stage.giveKv(id, kv(0));
      await stage.askDecode(id, most);
    }
    expect(answerOf(stage).tokens).toHaveLength(3);
    expect(stage.router.errors).toEqual([tooLarge]);
    expectIdle(stage.worker);
  });

  test("is not begun for a message of the wrong size, or of another id", async () => {
    const stage = decodeStage();
    for (const [id, size] of [
      [1n, 15],
      [2n, 16],
    ] as const) {
      await stage.giveKv(id, kv(1));
      await stage.router.say({
        destination: DECODE,
        tag: TAGS.decodeRequest,
        requestId: id,
        bytes: new Uint8Array(size),
      });
    }
    await quiet();
    expect(stage.router.errors).toEqual([badMessage, badMessage]);
    expectIdle(stage.worker);
  });

  test("concurrency run, maxWaiting wait, one more is refused as busy", async () => {
    const stage = decodeStage({ concurrency: 1, maxWaiting: 1, decodeStep: never });
    for (const id of [1n, 2n, 3n]) {
      await stage.giveKv(id, kv(1));
      await stage.askDecode(id, 1);
    }
    expect(stage.worker.stats()).toMatchObject({ running: 1, waiting: 1, refused: 1, heldBytes: 2 });
    expect(stage.router.errors).toEqual([busy]);
  });

  test("waits for room before every token, and no longer than sendTimeoutMs", async () => {
    const stuck = new MemoryNetwork({
      windowEnvelopes: 3,
      delay: ({ destination }) => (destination === ROUTER ? never() : undefined),
    });
    const stage = decodeStage({ ...endless, sendTimeoutMs: 60 }, stuck);
    await stage.giveKv(1n, kv(0));
    await stage.askDecode(1n, 1_000);
    await stage.clock.pass(59);
    expect(stage.worker.stats()).toMatchObject({ running: 1, failed: 0 });
    await stage.clock.pass(1);
    expect(stage.worker.stats()).toMatchObject({ running: 0, failed: 1, heldBytes: 0 });
    await stage.clock.pass(5_000); // the Error finds no room either, and is given up
    expectIdle(stage.worker);
    expect(stage.clock.timers).toBe(0);
  });
});

test("a step may take longer than sendTimeoutMs, which is about sending alone", async () => {
  const stage: ReturnType<typeof decodeStage> = decodeStage({
    sendTimeoutMs: 50,
    decodeStep: (_kv, _last, position) => stage.clock.delay(80).then(() => BigInt(position)),
  });
  await stage.giveKv(1n, kv(0));
  await stage.askDecode(1n, 3);
  await stage.clock.pass(240);
  expect(answerOf(stage)).toEqual({ tokens: [0n, 1n, 2n], isDone: true });
  expect(stage.clock.timers).toBe(0);
});

test.each([{ concurrency: 1.5 }, { maxHeldBytes: 0 }, { orphanKvMs: 0 }, { decodeStep: 5 as unknown as () => bigint }])(
  "options out of range are refused (%#)",
  (options) => {
    expect(() => decodeStage(options)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^KVROUTE_ARG/) }),
    );
  },
);
