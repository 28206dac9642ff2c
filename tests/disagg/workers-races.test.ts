import { describe, expect, test } from "vitest";
import { ERROR_CODES, encodeDecodeRequest, encodeError, PrefillWorker, TAGS } from "../../src/disagg/index.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import { quiet } from "./router-clock.js";
import { expectIdle, prompt } from "./router-stage.js";
import { DECODE, decodeStage, PREFILL, Puppet, prefillStage } from "./workers-stage.js";

const tokens = prompt(1, 2, 3);
const { failed, kvMissing } = ERROR_CODES;

/** What cannot be told in words, or only in strange ones. */
const oddities: [string, unknown][] = [
  ["an object without a prototype", Object.create(null)],
  ["an error whose message is none", Object.assign(new Error(), { message: { code: 7 } })],
  ["a symbol", Symbol("no")],
  ["nothing", undefined],
  [
    "an error whose message throws",
    Object.defineProperty(new Error("no"), "message", {
      get() {
        throw new Error("no words");
      },
    }),
  ],
];

describe.each(oddities)("a function that throws %s", (_, thrown) => {
  test("fails that prompt alone", async () => {
    const stage = prefillStage({
      prefill: () => {
        throw thrown;
      },
    });
    await stage.askPrefill(1n, tokens);
    expect(stage.router.errors).toEqual([failed]);
    expectIdle(stage.worker);
  });

  test("fails that answer alone", async () => {
    const stage = decodeStage({ decodeStep: () => Promise.reject(thrown) });
    await stage.giveKv(1n, Uint8Array.of(1));
    await stage.askDecode(1n, 2);
    expect(stage.router.errors).toEqual([failed]);
    expectIdle(stage.worker);
  });
});

test("a decode worker that refuses for no known reason, 0, fails the prompt, and its router is told", async () => {
  const stage = prefillStage();
  await stage.askPrefill(1n, tokens);
  const bytes = encodeError({ requestId: 1n, code: 0, text: "no reason" });
  await stage.other.say({ destination: PREFILL, tag: TAGS.error, bytes });
  await quiet();
  expect(stage.router.errors).toEqual([failed]);
  expect(stage.worker.stats()).toMatchObject({ failed: 1, cancelled: 0 });
});

test("a function that ends its own worker gives back what was held for it, once", async () => {
  const network = new MemoryNetwork();
  const stop = new AbortController();
  const router = new Puppet(network.connect(0));
  const stage = prefillStage({}, new MemoryNetwork());
  const worker = new PrefillWorker({
    transport: network.connect(PREFILL),
    clock: stage.clock,
    prefill: () => {
      stop.abort();
      return new Uint8Array(1);
    },
  });
  const run = worker.run(stop.signal);
  const to = { destination: PREFILL, router: 0, requestId: 1n };
  const bytes = new Uint8Array(24);
  await router.transport.send({ ...to, tag: TAGS.promptTokens, sequence: 0, bytes });
  const request = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, DECODE, 0, 0, 0);
  await router.transport.send({ ...to, tag: TAGS.prefillRequest, sequence: 1, bytes: request });
  await run;
  await quiet();
  expectIdle(worker);
  expect([router.errors, worker.stats().failed]).toEqual([[ERROR_CODES.closing], 1]);
});

test("a router that comes back is served under its old ids, even if a function still ignores that it was gone", async () => {
  const finish: (() => void)[] = [];
  const stage = prefillStage({
    concurrency: 2,
    prefill: () => new Promise((resolve) => finish.push(() => resolve(new Uint8Array(1)))),
  });
  await stage.askPrefill(1n, tokens);
  stage.network.disconnect(0);
  await quiet();
  expect(stage.worker.stats()).toMatchObject({ running: 1 });
  const router = new Puppet(stage.network.connect(0));
  const to = { destination: PREFILL, requestId: 1n };
  const request = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, DECODE, 0, 0, 0);
  await router.say({ ...to, tag: TAGS.promptTokens, bytes: new Uint8Array(0) });
  await router.say({ ...to, tag: TAGS.prefillRequest, sequence: 1, bytes: request });
  await quiet();
  expect(stage.worker.stats()).toMatchObject({ running: 2, strays: 0 });
  finish[0]?.();
  await quiet();
  expect(stage.worker.stats()).toMatchObject({ running: 1, cancelled: 1 });
  finish[1]?.();
  await quiet();
  await stage.acknowledge(1n);
  expect(router.of(TAGS.prefillDone)).toHaveLength(1);
  expectIdle(stage.worker);
});

describe("a claim that comes late", () => {
  test("is told that its KV cache was dropped", async () => {
    const stage = decodeStage({ orphanKvMs: 10 });
    await stage.giveKv(1n, Uint8Array.of(1));
    await stage.clock.pass(10);
    expect(stage.worker.stats()).toMatchObject({ expired: 1, pending: 0 });
    await stage.askDecode(1n, 2);
    expect(stage.router.errors).toEqual([kvMissing]);
  });

  test("is no one's if the request was cancelled", async () => {
    const stage = decodeStage();
    await stage.giveKv(1n, Uint8Array.of(1));
    await stage.cancel(DECODE, 1n);
    await stage.askDecode(1n, 2);
    expect(stage.router.errors).toEqual([]);
    expect(stage.worker.stats()).toMatchObject({ strays: 1 });
  });

  test("is no one's if another rank makes it", async () => {
    const stage = decodeStage({ orphanKvMs: 10 });
    await stage.giveKv(1n, Uint8Array.of(1));
    await stage.clock.pass(10);
    const bytes = encodeDecodeRequest({ requestId: 1n, maxNewTokens: 1 });
    await stage.other.say({ destination: DECODE, tag: TAGS.decodeRequest, bytes });
    await quiet();
    expect([stage.router.errors, stage.other.errors]).toEqual([[], []]);
  });
});

test("a step may give any thenable", async () => {
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: it is what the test is about
    then: (resolve: (token: bigint) => void) => resolve(5n),
  };
  const stage = decodeStage({ decodeStep: () => thenable as unknown as Promise<bigint> });
  await stage.giveKv(1n, Uint8Array.of(1));
  await stage.askDecode(1n, 2);
  expect(stage.router.of(TAGS.decodedToken)).toHaveLength(2);
});
