import { describe, expect, test } from "vitest";
import { DecodeWorker, ERROR_CODES } from "../../src/disagg/index.js";
import type { Transport } from "../../src/transport/types.js";
import { quiet } from "./router-clock.js";
import { endless, expectIdle } from "./router-stage.js";
import { answerOf, DECODE, decodeStage, ROUTER, WorkerStage } from "./workers-stage.js";

const { closing } = ERROR_CODES;
const kv = (...bytes: number[]) => Uint8Array.from(bytes);

describe("giving up", () => {
  test("a Cancel drops a KV cache, and stops an answer", async () => {
    const signals: AbortSignal[] = [];
    const stage = decodeStage({
      decodeStep: (_kv, _last, _position, signal) => {
        signals.push(signal);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    for (const id of [1n, 2n]) await stage.giveKv(id, kv(1));
    await stage.askDecode(1n, 9);
    for (const id of [1n, 2n]) await stage.cancel(DECODE, id);
    expect(stage.worker.stats()).toMatchObject({ cancelled: 2 });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(stage.router.heard).toEqual([]);
    expectIdle(stage.worker);
  });

  test("nothing is sent after a Cancel, even if the transport would send for a signal that is aborted", async () => {
    let finish = (_token: bigint) => {};
    const stage = new WorkerStage(DECODE, (end, clock) => {
      const transport: Transport = {
        rank: end.rank,
        send: (envelope) => end.send(envelope),
        receive: (options) => end.receive(options),
        onPeerLost: (listener) => end.onPeerLost(listener),
        close: (reason) => end.close(reason),
      };
      const decodeStep = () =>
        new Promise<bigint>((resolve) => {
          finish = resolve;
        });
      return new DecodeWorker({ transport, clock, decodeStep });
    });
    await stage.giveKv(1n, kv(1));
    await stage.askDecode(1n, 2);
    await stage.cancel(DECODE, 1n);
    finish(5n);
    await quiet();
    expect(stage.router.heard).toEqual([]);
    expectIdle(stage.worker);
  });

  test("a Cancel that overtakes the KV cache keeps it from being held", async () => {
    const stage = decodeStage();
    await stage.cancel(DECODE, 1n);
    await stage.giveKv(1n, kv(1));
    expect(stage.worker.stats()).toMatchObject({ pending: 0, heldBytes: 0, strays: 2 });
  });

  test("a router that is lost takes its KV caches and answers with it", async () => {
    const stage = decodeStage({ decodeStep: () => new Promise((resolve) => setImmediate(resolve, 5n)) });
    for (const id of [1n, 2n]) await stage.giveKv(id, kv(1));
    await stage.askDecode(1n, 9_999);
    stage.network.disconnect(ROUTER);
    await quiet();
    await quiet();
    expect(stage.worker.stats()).toMatchObject({ cancelled: 2 });
    expectIdle(stage.worker);
  });

  test("close() refuses new KV caches, and waits for the claims of those that have come", async () => {
    const stage = decodeStage(endless);
    await stage.giveKv(1n, kv(1, 0, 0, 0));
    const closed = stage.worker.close();
    await stage.giveKv(2n, kv(1));
    expect(stage.other.errors).toEqual([closing]);
    await stage.askDecode(1n, 2);
    expect(answerOf(stage)).toEqual({ tokens: [1n, 2n], isDone: true });
    await Promise.all([closed, stage.run]);
    expect(stage.clock.timers).toBe(0);
  });

  test("close() waits no longer than an orphan is kept, nor than closeTimeoutMs", async () => {
    const orphan = decodeStage({ orphanKvMs: 50 });
    await orphan.giveKv(1n, kv(1));
    await orphan.clock.value(orphan.worker.close());
    expect([orphan.clock.now(), orphan.worker.stats().expired]).toEqual([50, 1]);
    const late = decodeStage({ closeTimeoutMs: 50 });
    await late.giveKv(1n, kv(1));
    await late.clock.value(late.worker.close());
    expect(late.clock.now()).toBe(50);
    await quiet();
    expect(late.router.errors).toEqual([closing]);
    expectIdle(late.worker);
  });
});
