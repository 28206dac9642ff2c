import { describe, expect, test } from "vitest";
import type { DisaggError } from "../../src/disagg/index.js";
import { quiet } from "./router-clock.js";
import { answerTo } from "./router-model.js";
import { codeOf, endless, never, prompt, recorded, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("workers come and go", () => {
  test("draining gives a worker nothing new, and ends with its last request", async () => {
    const stage: Stage = new Stage({
      decode: [2, 4],
      decodeWorker: { decodeStep: (_kv, _last, position) => stage.clock.delay(10).then(() => BigInt(position)) },
    });
    const first = stage.router.collect({ tokens, maxNewTokens: 5 });
    await stage.clock.pass(15);
    let isDrained = false;
    const drained = stage.router.drainWorker(2).then(() => {
      isDrained = true;
    });
    const others = [1, 2, 3].map(() => stage.router.collect({ tokens, maxNewTokens: 1 }));
    expect(await stage.clock.value(Promise.all(others))).toHaveLength(3);
    expect(isDrained).toBe(false);
    expect(stage.decode.map((worker) => worker.stats().complete)).toEqual([0, 3]);
    await stage.clock.value(Promise.all([first, drained]));
    expect(stage.router.stats().workers.find(({ rank }) => rank === 2)).toMatchObject({
      state: "draining",
      inFlight: 0,
    });
    stage.router.addDecodeWorker(2);
    await stage.clock.value(Promise.all([1, 2].map(() => stage.router.collect({ tokens, maxNewTokens: 1 }))));
    expect(stage.decode.map((worker) => worker.stats().complete)).toEqual([2, 4]);
    await expect(stage.router.drainWorker(9)).rejects.toMatchObject({ code: "KVROUTE_UNKNOWN_RANK" });
  });

  test("a wait for a worker to drain can be given up", async () => {
    const { stage } = recorded({ prefillWorker: { prefill: never } });
    const gone = new AbortController();
    const answer = stage.router.collect({ tokens, maxNewTokens: 1, signal: gone.signal });
    await quiet();
    const stop = new AbortController();
    const drained = stage.router.drainWorker(1, { signal: stop.signal });
    stop.abort(new Error("too long"));
    await expect(drained).rejects.toThrow("too long");
    gone.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");
  });

  test("removing a worker fails what it generates, with the tokens that had arrived", async () => {
    const stage: Stage = new Stage({
      decode: [2, 4],
      decodeWorker: { decodeStep: (_kv, _last, position) => stage.clock.delay(10).then(() => BigInt(position)) },
    });
    const both = [1, 2].map(() => stage.router.collect({ tokens, maxNewTokens: 5 }));
    const settled = Promise.allSettled(both);
    await stage.clock.pass(25);
    stage.router.removeWorker(2);
    const [first, second] = await stage.clock.value(settled);
    expect(first).toMatchObject({
      status: "rejected",
      reason: { code: "KVROUTE_DISAGG_WORKER_LOST", tokens: 2, rank: 2 },
    });
    expect(second).toMatchObject({ status: "fulfilled" });
    expect(stage.router.stats().workers.map(({ rank }) => rank)).toEqual([1, 4]);
    stage.expectRest();
  });

  test("a prefill worker that is lost or removed after its phase spoils nothing", async () => {
    const stage: Stage = new Stage({
      prefill: [1, 3],
      decodeWorker: { decodeStep: (_kv, _last, position) => stage.clock.delay(10).then(() => BigInt(position)) },
    });
    const both = Promise.all([1, 2].map(() => stage.router.collect({ tokens, maxNewTokens: 3 })));
    await stage.clock.pass(15);
    stage.network.disconnect(1);
    stage.router.removeWorker(3);
    expect(await stage.clock.value(both)).toEqual([
      [3n, 4n, 5n],
      [3n, 4n, 5n],
    ]);
    stage.expectRest();
  });

  test("a worker that is lost is chosen no more until it is added again", async () => {
    const lost: number[] = [];
    const { stage } = recorded({
      decode: [2, 4],
      router: { onEvent: (event) => event.type === "worker-lost" && lost.push(event.rank) },
    });
    const ask = () => stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 2 }));
    await ask();
    stage.network.disconnect(4);
    await quiet();
    expect(lost).toEqual([4]);
    for (let times = 0; times < 3; times++) expect(await ask()).toEqual(answerTo(tokens, 2));
    stage.network.disconnect(2);
    await quiet();
    expect(codeOf(await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 2 })))).toBe(
      "KVROUTE_NO_WORKERS",
    );
    expect(stage.router.stats()).toMatchObject({ inFlight: 0, nextRequestId: 5n });
  });
});

describe("closing", () => {
  test("waits for what is in flight, and refuses what is new", async () => {
    const { stage } = recorded({ decodeWorker: endless });
    const answer = stage.router.collect({ tokens, maxNewTokens: 50 });
    const closed = stage.router.close();
    expect(codeOf(await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 1 })))).toBe(
      "KVROUTE_DISAGG_CLOSED",
    );
    expect(await stage.clock.value(answer)).toHaveLength(50);
    await stage.clock.value(closed);
    expect(stage.clock.now()).toBe(0); // it did not wait any longer
    expect(stage.router.stats()).toMatchObject({ complete: 1, refused: 1 });
    stage.expectRest();
  });

  test("gives up what has not ended by closeTimeoutMs", async () => {
    const { stage } = recorded({ prefillWorker: { prefill: never }, router: { closeTimeoutMs: 70 } });
    const answer = stage.router.collect({ tokens, maxNewTokens: 50 });
    answer.catch(() => {});
    await stage.clock.value(stage.router.close());
    expect(stage.clock.now()).toBe(70);
    expect(codeOf(await stage.clock.reason(answer))).toBe("KVROUTE_DISAGG_CLOSED");
    expect(stage.router.stats().inFlight).toBe(0);
  });

  test("of a router that never began is done at once, twice as well", async () => {
    const { stage } = recorded();
    await Promise.all([stage.router.close(), stage.router.close()]);
    expect(codeOf(await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 1 })))).toBe(
      "KVROUTE_DISAGG_CLOSED",
    );
  });

  test("a transport that breaks ends every request, and says why", async () => {
    const { stage } = recorded({ prefillWorker: { prefill: never } });
    const answer = stage.router.collect({ tokens, maxNewTokens: 1 });
    answer.catch(() => {});
    await quiet();
    stage.network.disconnect(0, "the cable was cut");
    const error = (await stage.clock.reason(answer)) as DisaggError;
    expect([error.code, error.tokens]).toEqual(["KVROUTE_DISAGG_CLOSED", 0]);
    expect(error.message).toContain("the cable was cut");
  });
});
