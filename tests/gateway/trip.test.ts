import { describe, expect, test } from "vitest";
import type { Receipt } from "../../src/gateway/receipt.js";
import { createPolicy, type Policy } from "../../src/selection/policy.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, type HandCall, handStage } from "./stage.js";

const WORK_MS = 5;
const answer = (call: HandCall, status = 200, body: unknown = { choices: [] }) =>
  call.respond(new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } }));

describe("routing time", () => {
  test("of each decision counts once, whatever was tried before; a receipt has all of it", async () => {
    const clock = new VirtualClock();
    const kv = createPolicy("kv");
    const policy: Policy = {
      name: "slow",
      choose: (...asked) => {
        clock.advance(WORK_MS);
        return kv.choose(...asked);
      },
    };
    const receipts: Receipt[] = [];
    const workers = ["a", "b", "c"].map((id) => ({ id, url: `http://${id}` }));
    const { engine, router } = handStage({
      ...{ workers, clock, policy, retry: {} },
      onDecision: (receipt) => receipts.push(receipt),
    });
    const response = router.fetch(CHAT_URL, chat("x"));
    for (const [call, status] of [500, 503, 200].entries()) {
      const at = await engine.call(call);
      clock.advance(100); // with the worker: that is not routing
      answer(at, status);
    }
    await (await response).text();
    expect(receipts.map(({ routingMs }) => routingMs)).toEqual([WORK_MS, 2 * WORK_MS, 3 * WORK_MS]);
    const { sum, count } = router.stats().timings.routing;
    expect([sum, count]).toEqual([expect.closeTo((3 * WORK_MS) / 1_000, 6), 3]);
  });
});

describe("requests that can go to the same workers", () => {
  test("are told from those of a model that is called as they are", async () => {
    const workers = [
      { id: "a", url: "http://a", maxInFlight: 1 },
      { id: "b", url: "http://b", maxInFlight: 1 },
    ];
    const { engine, router } = handStage({ workers });
    const stored = (more: object) => ({ ...chat(""), body: JSON.stringify({ input: "x", ...more }) });
    const first = router.fetch("http://kvroute/v1/responses", stored({ model: "m" }));
    answer(await engine.call(0), 200, { id: "resp_1" });
    await (await first).text();
    const keeper = new URL((await engine.call(0)).url).hostname;
    const read = (response: Promise<Response>) => response.then((one) => one.text());
    const texts = ["x", "y"].map((content) => read(router.fetch(CHAT_URL, chat(content))));
    await engine.call(2);
    // It waits for its keeper alone, which is not the first to be free.
    const kept = stored({ model: "m", previous_response_id: "resp_1" });
    texts.push(read(router.fetch("http://kvroute/v1/responses", kept)));
    await until(() => router.stats().queue.waiting === 1, "it waits");
    texts.push(read(router.fetch(CHAT_URL, chat("z", { model: JSON.stringify(["m", keeper]) }))));
    await until(() => router.stats().queue.waiting === 2, "both wait");
    const isKept = (call: HandCall) => new URL(call.url).hostname === keeper;
    const [, ...both] = engine.calls;
    for (const call of both.filter((one) => !isKept(one))) answer(call);
    const next = await engine.call(3);
    expect(isKept(next)).toBe(false);
    for (const call of both.filter(isKept)) answer(call);
    answer(next);
    answer(await engine.call(4));
    expect(await Promise.all(texts)).toHaveLength(4);
  });
});
