import { describe, expect, test } from "vitest";
import { type RouterEvent, TAGS } from "../../src/disagg/index.js";
import { quiet } from "./router-clock.js";
import { codeOf, endless, prompt, recorded, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("trying again", () => {
  const workers = { prefill: [1, 3], decode: [2], router: { tieBreak: "first" } } as const;

  test("a prompt that one worker fails at is computed by another, under a new id", async () => {
    const events: RouterEvent[] = [];
    let calls = 0;
    const { stage, sent } = recorded({
      ...workers,
      router: { tieBreak: "first", onEvent: (event) => events.push(event) },
      prefillWorker: {
        prefill: (prompted) => {
          if (calls++ === 0) throw new Error("out of memory");
          return new Uint8Array(prompted.length + 1);
        },
      },
      decodeWorker: endless,
    });
    expect(await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 2 }))).toEqual([0n, 1n]);
    const requests = sent.filter(({ tag }) => tag === TAGS.prefillRequest);
    expect(requests.map(({ destination, requestId }) => [destination, requestId])).toEqual([
      [1, 1n],
      [3, 2n],
    ]);
    expect(events.map(({ type }) => type)).toEqual(["prefill", "retry", "prefill", "decode", "first-token", "end"]);
    expect(stage.router.stats()).toMatchObject({ complete: 1, failed: 0, retries: 1 });
    stage.expectRest();
  });

  test("is done once, and only where there is another worker", async () => {
    const failing = { prefill: () => Promise.reject(new Error("no")) };
    const two = new Stage({ ...workers, prefill: [1, 3, 5], prefillWorker: failing });
    expect(codeOf(await two.clock.reason(two.router.collect({ tokens, maxNewTokens: 2 })))).toBe(
      "KVROUTE_DISAGG_WORKER_FAILED",
    );
    expect(two.prefill.map((worker) => worker.stats().failed)).toEqual([1, 1, 0]);
    const one = new Stage({ prefillWorker: failing });
    const error = await one.clock.reason(one.router.collect({ tokens, maxNewTokens: 2 }));
    expect(error).toMatchObject({ code: "KVROUTE_DISAGG_WORKER_FAILED", rank: 1, tokens: 0 });
    expect((error as Error).message).toMatch(/prefill worker 1 .* gave it up \(code 1\): no, after 0 tokens/);
  });

  test("is not done for a KV cache that is too large: it is as large on any worker", async () => {
    const stage = new Stage({ ...workers, prefillWorker: { maxKvBytes: 1 } });
    const error = await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 2 }));
    expect([codeOf(error), stage.router.stats().retries]).toEqual(["KVROUTE_DISAGG_KV_REFUSED", 0]);
  });

  test("is not done with prefillRetries 0", async () => {
    const failing = { prefill: () => Promise.reject(new Error("no")) };
    const stage = new Stage({ ...workers, router: { prefillRetries: 0 }, prefillWorker: failing });
    expect((await stage.clock.settled(stage.router.collect({ tokens, maxNewTokens: 2 }))).status).toBe("rejected");
    expect(stage.router.stats().retries).toBe(0);
  });

  test("goes to another decode worker if that one was lost during prefill, also with one prefill worker", async () => {
    const stage: Stage = new Stage({
      decode: [2, 4],
      prefillWorker: {
        prefill: async (prompted) => {
          if (stage.network.ranks.includes(2)) stage.network.disconnect(2);
          await stage.clock.delay(1);
          return new Uint8Array(prompted.length);
        },
      },
      decodeWorker: endless,
    });
    expect(await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 2 }))).toEqual([0n, 1n]);
    await quiet();
    stage.expectRest();
  });
});

describe("sessions", () => {
  test("stay with the worker that answered, until it is removed or they are evicted", async () => {
    const decoded: number[] = [];
    const { stage } = recorded({
      decode: [2, 4],
      router: { onEvent: (event) => event.type === "prefill" && decoded.push(event.decodeRank) },
    });
    const ask = (session?: string) => stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 1, session }));
    for (const session of ["a", undefined, "a", "a"]) await ask(session);
    expect(decoded).toEqual([2, 4, 2, 2]);
    stage.router.evictSession("a");
    await ask();
    await ask("a");
    expect(decoded.slice(4)).toEqual([2, 4]);
    stage.router.removeWorker(4);
    expect(stage.router.stats().sessions).toBe(0);
    await ask("a");
    expect(decoded.slice(6)).toEqual([2]);
  });

  test("are not recorded for an answer that did not end", async () => {
    const { stage } = recorded({ decodeWorker: endless });
    const leave = async () => {
      for await (const _ of stage.router.route({ tokens, maxNewTokens: 9_999, session: "a" })) return;
    };
    await stage.clock.value(leave());
    expect(stage.router.stats().sessions).toBe(0);
  });
});
