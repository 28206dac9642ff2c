import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { ERROR_CODES, encodeCancel, PrefillWorker, TAGS } from "../../src/disagg/index.js";
import type { Transport } from "../../src/transport/types.js";
import { quiet } from "./router-clock.js";
import { prefill } from "./router-model.js";
import { expectIdle, never, prompt } from "./router-stage.js";
import { PREFILL, prefillStage } from "./workers-stage.js";

const tokens = prompt(1, 2, 3);
const { closing } = ERROR_CODES;

describe("giving up", () => {
  test("a Cancel drops half a request, one that waits, and one that runs, whose signal is aborted", async () => {
    const signals: AbortSignal[] = [];
    const stage = prefillStage({
      prefill: (_, signal) => {
        signals.push(signal);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    await stage.askPrefill(1n, tokens);
    await stage.askPrefill(2n, tokens);
    await stage.prompt(3n, tokens);
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ running: 1, waiting: 1, pending: 1, heldBytes: 72 });
    for (const id of [3n, 2n, 1n]) await stage.cancel(PREFILL, id);
    expect(stage.worker.stats()).toMatchObject({ cancelled: 3 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(stage.router.heard).toEqual([]);
    expectIdle(stage.worker);
  });

  test("a Cancel that overtakes its request keeps it from beginning", async () => {
    const stage = prefillStage();
    await stage.cancel(PREFILL, 1n);
    await stage.askPrefill(1n, tokens);
    expect(stage.other.heard).toEqual([]);
    expect(stage.worker.stats()).toMatchObject({ strays: 2, pending: 0 });
  });

  test("maxRemembered requests that were given up are remembered, the oldest goes first", async () => {
    const stage = prefillStage({ maxRemembered: 2 });
    for (const id of [1n, 2n, 3n]) await stage.cancel(PREFILL, id);
    for (const id of [1n, 2n, 3n]) await stage.prompt(id, tokens);
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ pending: 1, strays: 2 });
  });

  test("only the router itself can cancel, and only in so many words", async () => {
    const stage = prefillStage({ prefill: never });
    await stage.askPrefill(1n, tokens);
    await stage.other.say({ destination: PREFILL, tag: TAGS.cancel, bytes: encodeCancel({ requestId: 1n }) });
    await stage.router.say({ destination: PREFILL, tag: TAGS.cancel, bytes: new Uint8Array(7) });
    await stage.router.say({ destination: PREFILL, tag: TAGS.cancel, bytes: new Uint8Array(8) }); // says id 0
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ running: 1, strays: 3, cancelled: 0 });
  });

  test("a router that is lost takes all its requests with it, and may count from 1 again", async () => {
    const stage = prefillStage({
      prefill: (_, signal) => new Promise((_, no) => signal.addEventListener("abort", no)),
    });
    await stage.askPrefill(1n, tokens);
    await stage.askPrefill(2n, tokens);
    await stage.prompt(3n, tokens);
    await stage.cancel(PREFILL, 4n);
    stage.network.disconnect(0);
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ cancelled: 3 });
    expectIdle(stage.worker);
    const router = stage.network.connect(0);
    const to = { destination: PREFILL, router: 0, requestId: 4n, sequence: 0, tag: TAGS.promptTokens };
    await router.send({ ...to, bytes: new Uint8Array(8) });
    await quiet();
    expect(stage.worker.stats().pending).toBe(1);
  });

  test("a function that ignores its signal keeps its place until it returns", async () => {
    let finish = () => {};
    const stage = prefillStage({
      prefill: () =>
        new Promise((resolve) => {
          finish = () => resolve(new Uint8Array(1));
        }),
    });
    await stage.askPrefill(1n, tokens);
    await stage.cancel(PREFILL, 1n);
    expect(stage.worker.stats()).toMatchObject({ running: 1, cancelled: 0 });
    finish();
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ cancelled: 1 });
    expect(stage.other.heard).toEqual([]);
    expectIdle(stage.worker);
  });
});

describe("closing", () => {
  test("refuses what is new, finishes what has come, and ends run()", async () => {
    const stage = prefillStage();
    await stage.askPrefill(1n, tokens);
    const closed = stage.worker.close();
    await stage.askPrefill(2n, tokens);
    expect(stage.router.errors).toEqual([closing]);
    await stage.acknowledge(1n);
    await Promise.all([closed, stage.worker.close(), stage.run]);
    expect(stage.router.of(TAGS.prefillDone)).toHaveLength(1);
    expect(stage.clock.timers).toBe(0);
  });

  test("tells the routers of what it gives up when its time is over", async () => {
    const stage = prefillStage({ closeTimeoutMs: 40 });
    for (const id of [1n, 2n]) await stage.askPrefill(id, tokens); // one runs, one waits
    await stage.prompt(3n, tokens);
    await quiet();
    await stage.clock.value(stage.worker.close());
    expect(stage.clock.now()).toBe(40);
    await quiet();
    expect(stage.router.errors.sort()).toEqual([closing, closing, closing]);
    expectIdle(stage.worker);
  });

  test("run() ends with its signal, at once", async () => {
    const stop = new AbortController();
    const stage = prefillStage();
    const own = new PrefillWorker({ prefill, transport: stage.network.connect(5), clock: stage.clock });
    const run = own.run(stop.signal);
    stop.abort();
    await run;
    await expect(own.run()).rejects.toMatchObject({ code: "KVROUTE_DISAGG_CLOSED" });
    await own.close();
  });

  test("leaves no listener behind, on the transport or on the signal of run()", async () => {
    const stage = prefillStage();
    const end = stage.network.connect(5);
    let listeners = 0;
    const counted = (on: () => () => void) => {
      listeners++;
      const off = on();
      return () => {
        listeners--;
        off();
      };
    };
    const transport: Transport = {
      rank: end.rank,
      send: (envelope, options) => end.send(envelope, options),
      receive: (options) => end.receive(options),
      onPeerLost: (listener) => counted(() => end.onPeerLost(listener)),
      close: (reason) => end.close(reason),
    };
    const worker = new PrefillWorker({ prefill, transport, clock: stage.clock });
    const { signal } = new AbortController();
    const run = worker.run(signal);
    await quiet();
    expect([listeners, getEventListeners(signal, "abort").length]).toEqual([1, 1]);
    await worker.close();
    await run;
    expect([listeners, getEventListeners(signal, "abort").length]).toEqual([0, 0]);
  });

  test("run() fails as its transport does, and holds nothing then", async () => {
    const stage = prefillStage();
    await stage.askPrefill(1n, tokens);
    stage.network.disconnect(PREFILL);
    await expect(stage.run).rejects.toMatchObject({ code: "KVROUTE_TRANSPORT_BROKEN" });
    await quiet();
    expectIdle(stage.worker);
    expect(stage.clock.timers).toBe(0);
  });
});
