import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { DisaggError, DisaggRouter, decodeCancel, TAGS } from "../../src/disagg/index.js";
import { quiet } from "./router-clock.js";
import { answerTo } from "./router-model.js";
import { endless, prompt, recorded, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("an answer", () => {
  test("is lazy: nothing is sent before the first token is asked for", async () => {
    const { stage, sent } = recorded();
    const answer = stage.router.route({ tokens, maxNewTokens: 4 });
    await quiet();
    expect(sent).toEqual([]);
    expect((await stage.clock.value(answer.next())).value).toBe(answerTo(tokens, 4)[0]);
    await answer.return?.();
    await quiet();
    stage.expectRest();
  });

  test("that is never asked for costs nothing, and one that is left before it began is over", async () => {
    const { stage, sent } = recorded();
    const answer = stage.router.route({ tokens, maxNewTokens: 4 });
    expect(await answer.return?.()).toEqual({ done: true, value: undefined });
    expect(await answer.next()).toEqual({ done: true, value: undefined });
    expect({ sent, inFlight: stage.router.stats().inFlight }).toEqual({ sent: [], inFlight: 0 });
  });

  test("takes the prompt as it was when route() was called", async () => {
    const { stage } = recorded();
    const changing = prompt(3, 1, 4);
    const answer = stage.router.route({ tokens: changing, maxNewTokens: 1 });
    changing.fill(9n);
    expect((await stage.clock.value(answer.next())).value).toBe(answerTo(tokens, 1)[0]);
  });

  test("answers several next() at once, in order", async () => {
    const stage = new Stage({ decodeWorker: endless });
    const answer = stage.router.route({ tokens, maxNewTokens: 3 });
    const taken = Promise.all([answer.next(), answer.next(), answer.next(), answer.next()]);
    expect((await stage.clock.value(taken)).map(({ value }) => value)).toEqual([3n, 4n, 5n, undefined]);
  });

  test("can be read once", async () => {
    const stage = new Stage({ decodeWorker: endless });
    const answer = stage.router.route({ tokens, maxNewTokens: 2 });
    const read = async () => {
      const got: bigint[] = [];
      for await (const token of answer) got.push(token);
      return got;
    };
    expect(await stage.clock.value(read())).toEqual([3n, 4n]);
    expect(await stage.clock.value(read())).toEqual([]);
  });
});

describe("cancelling", () => {
  test("leaving the loop is a cancel: both workers hear of it and stop, and the load is free", async () => {
    const { stage, sent } = recorded({
      decodeWorker: { decodeStep: (kv, last, position) => pause(kv, last, position) },
    });
    const pause = async (_kv: Uint8Array, _last: bigint, position: number) => {
      await stage.clock.delay(10);
      return BigInt(position);
    };
    const read = async () => {
      for await (const _ of stage.router.route({ tokens, maxNewTokens: 1_000 })) break;
    };
    await stage.clock.value(read());
    expect(stage.router.stats()).toMatchObject({ inFlight: 0, cancelled: 1 });
    await stage.clock.pass(100);
    const cancels = sent.filter(({ tag }) => tag === TAGS.cancel);
    expect(cancels.map(({ destination }) => destination)).toEqual([1, 2]);
    for (const { bytes } of cancels) expect(decodeCancel(bytes)).toEqual({ requestId: 1n });
    expect(stage.decodeWorker.stats().cancelled).toBe(1);
    stage.expectRest();
  });

  test.each(["prefill", "decode"] as const)("an abort frees the load at once, in the %s phase", async (phase) => {
    const signals: AbortSignal[] = [];
    const stuck = (...args: unknown[]) => {
      signals.push(args.at(-1) as AbortSignal);
      return new Promise<never>((_, reject) => signals[0]?.addEventListener("abort", () => reject(signals[0]?.reason)));
    };
    const { stage } = recorded(
      phase === "prefill" ? { prefillWorker: { prefill: stuck } } : { decodeWorker: { decodeStep: stuck } },
    );
    const gone = new AbortController();
    const answer = stage.router.collect({ tokens, maxNewTokens: 4, signal: gone.signal });
    answer.catch(() => {});
    await quiet();
    expect(stage.router.stats().workers.map(({ inFlight }) => inFlight)).toEqual(phase === "prefill" ? [1, 1] : [0, 1]);
    gone.abort(new Error("enough"));
    expect(stage.router.stats()).toMatchObject({ inFlight: 0, cancelled: 1 });
    expect(stage.router.stats().workers.map(({ inFlight }) => inFlight)).toEqual([0, 0]);
    await expect(answer).rejects.toThrow("enough");
    await quiet();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    stage.expectRest();
  });

  test("what waits to be sent is not sent after an abort", async () => {
    const sent: number[] = [];
    const way = new Map<number, () => void>();
    const stage = new Stage({
      network: () => ({
        windowEnvelopes: 1,
        loses: ({ tag }) => sent.push(tag) === 0,
        delay: ({ tag }) => (tag === TAGS.promptTokens ? new Promise<void>((open) => way.set(tag, open)) : undefined),
      }),
    });
    const gone = new AbortController();
    const answer = stage.router.collect({ tokens, maxNewTokens: 4, signal: gone.signal });
    await quiet();
    gone.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");
    way.get(TAGS.promptTokens)?.();
    await quiet();
    expect(sent).toEqual([TAGS.promptTokens, TAGS.cancel, TAGS.cancel]);
    await stage.clock.pass(30_000); // half a request, which the Cancel has dropped or will
    stage.expectRest();
  });

  test("a signal that is aborted already sends nothing", async () => {
    const { stage, sent } = recorded();
    const answer = stage.router.collect({ tokens, maxNewTokens: 4, signal: AbortSignal.abort(new Error("before")) });
    await expect(answer).rejects.toThrow("before");
    expect(sent).toEqual([]);
  });

  test("a request that is over leaves no listener on its signal", async () => {
    const stage = new Stage();
    const { signal } = new AbortController();
    await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 3, signal }));
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

test("a hook that throws is counted, and changes nothing", async () => {
  const onEvent = () => {
    throw new Error("metrics are down");
  };
  const stage = new Stage({ router: { onEvent } });
  expect(await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 2 }))).toEqual(answerTo(tokens, 2));
  expect(stage.router.stats().eventErrors).toBe(4);
});

test("without a clock, the runtime's is used", async () => {
  const stage = new Stage();
  const router = new DisaggRouter({
    transport: stage.network.connect(7),
    prefillWorkers: [1],
    decodeWorkers: [2],
    prefillTimeoutMs: 5,
  });
  stage.network.disconnect(2); // the prefill worker hears of it, the new router does not
  const error = await router.collect({ tokens, maxNewTokens: 1 }).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DisaggError);
});
