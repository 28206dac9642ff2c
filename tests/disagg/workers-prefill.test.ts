import { describe, expect, test } from "vitest";
import { decodePrefillDone, ERROR_CODES, TAGS } from "../../src/disagg/index.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import { quiet } from "./router-clock.js";
import { prefill } from "./router-model.js";
import { expectIdle, never, prompt } from "./router-stage.js";
import { DECODE, PREFILL, prefillStage } from "./workers-stage.js";

const tokens = prompt(1, 2, 3);
const { failed, busy, tooLarge, badMessage, peerLost } = ERROR_CODES;

describe("a prompt", () => {
  test.each(["prompt first", "description first"])("is computed once both halves are there: %s", async (order) => {
    const stage = prefillStage();
    const halves = [() => stage.prompt(1n, tokens), () => stage.prefillRequest(1n, 3)];
    if (order === "description first") halves.reverse();
    await halves[0]?.();
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ pending: 1, running: 0 });
    await halves[1]?.();
    await quiet();
    expect(stage.other.of(TAGS.kvCache).map(({ sequence, bytes }) => [sequence, bytes.length])).toEqual([
      [0, 8],
      [1, 12],
    ]);
    expect(stage.other.of(TAGS.kvCache)[1]?.bytes).toEqual(prefill(tokens));
    expect(stage.router.heard).toEqual([]); // not before the decode worker has it
    await stage.acknowledge(1n);
    expect(stage.router.of(TAGS.prefillDone).map(({ bytes }) => decodePrefillDone(bytes))).toEqual([
      { requestId: 1n, kvBytes: 12n },
    ]);
    expect(stage.worker.stats().complete).toBe(1);
    expectIdle(stage.worker);
    expect(stage.clock.timers).toBe(0);
  });

  test("waits for its other half no longer than pendingMs", async () => {
    const stage = prefillStage({ pendingMs: 100 });
    await stage.prompt(1n, tokens);
    await stage.clock.pass(99);
    expect(stage.worker.stats()).toMatchObject({ pending: 1, heldBytes: 24, expired: 0 });
    await stage.clock.pass(1);
    expect(stage.worker.stats()).toMatchObject({ pending: 0, heldBytes: 0, expired: 1 });
    expect(stage.clock.timers).toBe(0);
  });

  test.each<[string, number, Parameters<typeof prefillStage>[0]]>([
    ["a function that throws", failed, { prefill: () => Promise.reject(new Error("no")) }],
    [
      "a function that throws at once",
      failed,
      {
        prefill: () => {
          throw new Error("no");
        },
      },
    ],
    ["a function that gives nothing", failed, { prefill: () => new Uint8Array(0) }],
    ["a function that gives no bytes", failed, { prefill: () => "kv" as unknown as Uint8Array<ArrayBuffer> }],
    ["more tokens than maxPromptTokens", tooLarge, { maxPromptTokens: 2 }],
    ["more bytes than maxHeldBytes", busy, { maxHeldBytes: 23 }],
  ])("%s is an Error for that request alone", async (_, code, options) => {
    const stage = prefillStage(options);
    await stage.askPrefill(1n, tokens);
    expect(stage.router.errors).toEqual([code]);
    expectIdle(stage.worker);
    const { failed: failures, refused } = stage.worker.stats();
    expect(failures + refused).toBe(1);
  });

  test("at the limits of its size is taken", async () => {
    const stage = prefillStage({ maxPromptTokens: 3, maxHeldBytes: 24, maxKvBytes: 12 });
    await stage.askPrefill(1n, tokens);
    await stage.acknowledge(1n);
    expect(stage.worker.stats().complete).toBe(1);
  });

  test("that contradicts its description, or is no whole number of tokens, is an Error", async () => {
    const stage = prefillStage();
    await stage.askPrefill(1n, tokens, { seqLen: 4 });
    const to = { destination: PREFILL, requestId: 2n };
    await stage.router.say({ ...to, tag: TAGS.promptTokens, bytes: new Uint8Array(9) });
    await stage.router.say({ ...to, tag: TAGS.prefillRequest, requestId: 3n, bytes: new Uint8Array(15) });
    await stage.router.say({ ...to, tag: TAGS.prefillRequest, requestId: 4n, bytes: new Uint8Array(16) }); // says id 0
    await stage.prompt(5n, tokens);
    await stage.prompt(5n, tokens);
    await quiet();
    expect(stage.router.errors).toEqual([badMessage, badMessage, badMessage, badMessage, badMessage]);
    expectIdle(stage.worker);
  });

  test("whose KV cache is larger than maxKvBytes ends with a PrefillDone of 0 bytes", async () => {
    const stage = prefillStage({ maxKvBytes: 11 });
    await stage.askPrefill(1n, tokens);
    expect(stage.router.of(TAGS.prefillDone).map(({ bytes }) => decodePrefillDone(bytes).kvBytes)).toEqual([0n]);
    expect(stage.other.heard).toEqual([]);
    expect(stage.worker.stats().failed).toBe(1);
  });
});

describe("handing over", () => {
  test.each([
    [
      "refuses",
      async (stage: ReturnType<typeof prefillStage>) => {
        const bytes = new Uint8Array(12);
        new DataView(bytes.buffer).setUint32(8, busy, true);
        await stage.other.say({ destination: PREFILL, tag: TAGS.error, bytes });
      },
      busy,
    ],
    ["is lost", async (stage: ReturnType<typeof prefillStage>) => stage.network.disconnect(DECODE), peerLost],
    ["is silent", async (stage: ReturnType<typeof prefillStage>) => stage.clock.pass(50), peerLost],
    [
      "acknowledges in other bytes",
      async (stage: ReturnType<typeof prefillStage>) => {
        await stage.other.say({ destination: PREFILL, tag: TAGS.kvCacheAck, bytes: new Uint8Array(7) });
      },
      badMessage,
    ],
  ] as const)("is an Error if the decode worker %s", async (_, happens, code) => {
    const stage = prefillStage({ ackTimeoutMs: 50 });
    await stage.askPrefill(1n, tokens);
    await happens(stage);
    await quiet();
    expect(stage.router.errors).toEqual([code]);
    expectIdle(stage.worker);
  });

  test("is an Error if there is no decode worker", async () => {
    const stage = prefillStage();
    stage.network.disconnect(DECODE);
    await stage.askPrefill(1n, tokens);
    expect(stage.router.errors).toEqual([peerLost]);
  });

  test("waits for room no longer than sendTimeoutMs", async () => {
    // Nothing arrives on the way to the decode worker, so its window never opens again.
    const stuck = new MemoryNetwork({
      windowEnvelopes: 1,
      delay: ({ destination }) => (destination === DECODE ? never() : undefined),
    });
    const stage = prefillStage({ sendTimeoutMs: 80 }, stuck);
    await stage.askPrefill(1n, tokens);
    await stage.clock.pass(79);
    expect(stage.router.errors).toEqual([]);
    await stage.clock.pass(1);
    expect(stage.router.errors).toEqual([peerLost]);
    expectIdle(stage.worker);
  });

  test("takes an acknowledgement from the decode worker alone", async () => {
    const stage = prefillStage();
    await stage.askPrefill(1n, tokens);
    await stage.router.say({ destination: PREFILL, tag: TAGS.kvCacheAck, bytes: new Uint8Array(8) });
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ strays: 1, running: 1 });
  });
});

describe("how many at a time", () => {
  test("concurrency run, maxWaiting wait in order, one more is refused as busy", async () => {
    const begun: bigint[] = [];
    const stage = prefillStage({
      concurrency: 2,
      maxWaiting: 2,
      prefill: ([first]) => {
        begun.push(first as bigint);
        return new Uint8Array(1);
      },
    });
    for (const id of [1n, 2n, 3n, 4n, 5n]) await stage.askPrefill(id, BigInt64Array.of(id));
    expect(begun).toEqual([1n, 2n]);
    expect(stage.worker.stats()).toMatchObject({ running: 2, waiting: 2, refused: 1, heldBytes: 32 });
    expect(stage.router.errors).toEqual([busy]);
    for (const id of [2n, 1n, 3n, 4n]) await stage.acknowledge(id);
    expect(begun).toEqual([1n, 2n, 3n, 4n]);
    expect(stage.worker.stats().complete).toBe(4);
    expectIdle(stage.worker);
  });

  test("maxPending halves are kept, one more is refused as busy", async () => {
    const stage = prefillStage({ maxPending: 2 });
    for (const id of [1n, 2n, 3n]) await stage.prompt(id, tokens);
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ pending: 2, refused: 1, heldBytes: 48 });
    expect(stage.router.errors).toEqual([busy]);
  });
});

test.each([{ concurrency: 0 }, { maxKvBytes: 0 }, { pendingMs: 0.5 }, { prefill: "f" as unknown as typeof prefill }])(
  "options out of range are refused (%#)",
  (options) => {
    expect(() => prefillStage(options)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^KVROUTE_ARG/) }),
    );
  },
);
