import { describe, expect, test } from "vitest";
import type { DisaggError } from "../../src/disagg/index.js";
import { quiet } from "./router-clock.js";
import { codeOf, endless, never, prompt, recorded, Stage } from "./router-stage.js";

const tokens = prompt(3, 1, 4);

describe("time", () => {
  test.each([
    ["prefillTimeoutMs", { prefillWorker: { prefill: never } }, 0],
    ["firstTokenTimeoutMs", { decodeWorker: { decodeStep: never } }, 0],
    [
      "tokenTimeoutMs",
      { decodeWorker: { decodeStep: (_kv: Uint8Array, _last: bigint, at: number) => (at < 5 ? BigInt(at) : never()) } },
      2,
    ],
  ] as const)("%s ends a request whose worker is silent, and not before", async (limit, plan, arrived) => {
    const stage = new Stage({ ...plan, router: { [limit]: 250 } });
    const answer = stage.router.collect({ tokens, maxNewTokens: 9 });
    answer.catch(() => {});
    await stage.clock.pass(249);
    expect(stage.router.stats().inFlight).toBe(1);
    const error = (await stage.clock.reason(answer)) as DisaggError;
    expect([error.code, error.tokens, stage.clock.now()]).toEqual(["KVROUTE_DISAGG_TIMEOUT", arrived, 250]);
    expect(stage.router.stats()).toMatchObject({ inFlight: 0, failed: 1, notices: 0 });
  });

  test("requestTimeoutMs ends a request however lively it is", async () => {
    const stage: Stage = new Stage({
      router: { requestTimeoutMs: 1_000, tokenTimeoutMs: 300 },
      decodeWorker: { decodeStep: (_kv, _last, position) => stage.clock.delay(200).then(() => BigInt(position)) },
    });
    const error = (await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 99 }))) as DisaggError;
    expect([error.code, error.tokens, stage.clock.now()]).toEqual(["KVROUTE_DISAGG_TIMEOUT", 4, 1_000]);
    await stage.clock.pass(200);
    stage.expectRest();
  });

  test("requestTimeoutMs ends a request in its prefill phase without a second attempt", async () => {
    const limits = { requestTimeoutMs: 100, prefillTimeoutMs: 1_000 };
    const stage = new Stage({ prefill: [1, 3], prefillWorker: { prefill: never }, router: limits });
    const error = await stage.clock.reason(stage.router.collect({ tokens, maxNewTokens: 1 }));
    expect([codeOf(error), stage.clock.now(), stage.router.stats().retries]).toEqual([
      "KVROUTE_DISAGG_TIMEOUT",
      100,
      0,
    ]);
  });

  test("a slow reader holds up nobody, and is not timed out", async () => {
    const stage = new Stage({ decodeWorker: endless, router: { tokenTimeoutMs: 50 } });
    const slow = stage.router.route({ tokens, maxNewTokens: 600 });
    expect((await stage.clock.value(slow.next())).value).toBe(3n);
    await stage.clock.pass(10_000);
    expect(await stage.clock.value(stage.router.collect({ tokens, maxNewTokens: 600 }))).toHaveLength(600);
    let last = 3n;
    for await (const token of slow) last = token;
    expect(last).toBe(602n);
    stage.expectRest();
  });
});

describe("limits", () => {
  test("maxInFlight requests go, and one more is refused before anything is sent", async () => {
    const { stage, sent } = recorded({ router: { maxInFlight: 2 }, prefillWorker: { prefill: never, concurrency: 2 } });
    const gone = new AbortController();
    const ask = () => stage.router.collect({ tokens, maxNewTokens: 1, signal: gone.signal });
    const both = Promise.allSettled([ask(), ask()]);
    await quiet();
    const before = sent.length;
    expect(codeOf(await stage.clock.reason(ask()))).toBe("KVROUTE_DISAGG_BUSY");
    expect({ sent: sent.length, ...stage.router.stats() }).toMatchObject({ sent: before, inFlight: 2, refused: 1 });
    gone.abort();
    await both;
    const third = ask();
    await expect(third).rejects.toBe(gone.signal.reason); // refused by its signal, not for want of room
  });

  test.each([
    ["prompt tokens", { tokens: prompt(1, 2), maxNewTokens: 3 }, { tokens: prompt(1, 2, 3), maxNewTokens: 3 }],
    ["new tokens", { tokens, maxNewTokens: 0 }, { tokens: prompt(1), maxNewTokens: 4 }],
  ])("a request at the limit of %s is taken, one beyond it is refused", (_, good, bad) => {
    const { stage } = recorded({ router: { maxPromptTokens: good.tokens.length, maxNewTokens: 3 } });
    expect(() => stage.router.route(good)).not.toThrow();
    expect(() => stage.router.route(bad)).toThrow(expect.objectContaining({ code: "KVROUTE_ARGUMENT_RANGE" }));
  });

  test.each([
    { tokens: [1n] as unknown as BigInt64Array, maxNewTokens: 1 },
    { tokens, maxNewTokens: "1" as unknown as number },
    { tokens, maxNewTokens: 1, session: 7 as unknown as string },
  ])("a request of the wrong types is refused (%#)", (request) => {
    const { stage } = recorded();
    expect(() => stage.router.route(request)).toThrow(expect.objectContaining({ code: "KVROUTE_ARGUMENT_TYPE" }));
  });

  test.each([
    [{ maxInFlight: 0 }, "KVROUTE_ARGUMENT_RANGE"],
    [{ prefillRetries: 2 }, "KVROUTE_ARGUMENT_RANGE"],
    [{ tokenTimeoutMs: Number.POSITIVE_INFINITY }, "KVROUTE_ARGUMENT_RANGE"],
    [{ maxKvBytes: "1" as unknown as number }, "KVROUTE_ARGUMENT_TYPE"],
    [{ prefillWorkers: [1, 1] }, "KVROUTE_DUPLICATE_RANK"],
    [{ decodeWorkers: [1] }, "KVROUTE_DUPLICATE_RANK"],
    [{ firstRequestId: -1n }, "KVROUTE_ARGUMENT_RANGE"],
  ])("options out of range are refused (%#)", (router, code) => {
    expect(() => new Stage({ router })).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    [12, "fulfilled"],
    [11, "rejected"],
  ])("a KV cache of 12 bytes under maxKvBytes %i: %s", async (maxKvBytes, status) => {
    const stage = new Stage({ router: { maxKvBytes } });
    const result = await stage.clock.settled(stage.router.collect({ tokens, maxNewTokens: 2 }));
    expect(result.status).toBe(status);
    if (result.status === "rejected") expect(codeOf(result.reason)).toBe("KVROUTE_DISAGG_KV_REFUSED");
    await quiet();
    stage.expectRest(); // the decode worker has dropped the KV cache, too
  });
});
