import { describe, expect, test } from "vitest";
import type { Router, RouterOptions } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, type HandCall, handStage, isIdle } from "./stage.js";

const OPEN_MS = 1_000;
const JSON_TYPE = { "content-type": "application/json" };

/** Two workers with one request each at a time, of which one failure is enough. */
function stage(options: Partial<RouterOptions> = {}) {
  const clock = new VirtualClock();
  const workers = ["a", "b"].map((id) => ({ id, url: `http://${id}`, maxInFlight: 1 }));
  return {
    clock,
    ...handStage({ workers, clock, breaker: { failures: 1, openMs: OPEN_MS }, random: () => 0.5, ...options }),
  };
}

const workerOf = (call: HandCall | undefined) => (call === undefined ? undefined : new URL(call.url).hostname);
const answer = (call: HandCall, status = 200) =>
  call.respond(new Response(JSON.stringify({ choices: [] }), { status, headers: JSON_TYPE }));
const waiting = (router: Router, count: number) =>
  until(() => router.stats().queue.waiting === count, `${count} requests wait`);
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** One worker behind its breaker, the other one busy. */
async function oneRestsOneWorks(options: Partial<RouterOptions> = {}) {
  const parts = stage(options);
  const { engine, router } = parts;
  const failed = router.fetch(CHAT_URL, chat("x"));
  answer(await engine.call(0), 500);
  await (await failed).text();
  const long = router.fetch(CHAT_URL, chat("y"));
  await engine.call(1);
  expect(workerOf(engine.calls[1])).not.toBe(workerOf(engine.calls[0]));
  return { ...parts, long };
}

describe("a request that waits while a worker has a rest", () => {
  test("goes when the rest is over, though nothing else happens", async () => {
    const { engine, router, clock, long } = await oneRestsOneWorks();
    const held = router.fetch(CHAT_URL, chat("z"));
    await waiting(router, 1);
    clock.advance(OPEN_MS - 1);
    await turn();
    expect(engine.calls).toHaveLength(2);
    clock.advance(1);
    await waiting(router, 0);
    expect(workerOf(await engine.call(2))).toBe(workerOf(engine.calls[0]));
    for (const call of engine.calls.slice(1)) answer(call);
    for (const response of [await long, await held]) expect((await response.text()).length).toBeGreaterThan(0);
    expect(isIdle(router)).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("has the clock wake the router once, and nobody else has it", async () => {
    const { engine, router, clock, long } = await oneRestsOneWorks();
    const before = clock.pending;
    const callers = [new AbortController(), new AbortController()];
    const held = callers.map(({ signal }, at) => router.fetch(CHAT_URL, { ...chat(`z${at}`), signal }));
    await waiting(router, 2);
    expect(clock.pending).toBe(before + 3); // how long each may wait, and the end of the rest
    for (const [at, caller] of callers.entries()) {
      caller.abort();
      await expect(held[at]).rejects.toThrow();
    }
    expect(clock.pending).toBe(before);
    answer(engine.calls[1] as HandCall);
    await (await long).text();
    expect(clock.pending).toBe(0);
  });

  test("is woken again where the probe fails, by the end of the next rest", async () => {
    const { engine, router, clock } = await oneRestsOneWorks();
    const first = router.fetch(CHAT_URL, chat("z"));
    const second = router.fetch(CHAT_URL, chat("w"));
    await waiting(router, 2);
    clock.advance(OPEN_MS);
    answer(await engine.call(2), 500);
    expect((await first).status).toBe(500);
    await (await first).text();
    clock.advance(OPEN_MS - 1);
    await turn();
    expect(engine.calls).toHaveLength(3);
    clock.advance(1);
    answer(await engine.call(3));
    expect((await second).status).toBe(200);
  });

  test("leaves no timer behind when the router is closed, nor when the worker goes", async () => {
    for (const end of ["close", "remove"] as const) {
      const { engine, router, clock, long } = await oneRestsOneWorks();
      const held = router.fetch(CHAT_URL, chat("z"));
      await waiting(router, 1);
      if (end === "close") {
        await router.close({ signal: AbortSignal.abort() });
        expect((await held).status).toBe(503);
        expect((await long).status).toBe(503);
      } else {
        const before = clock.pending;
        router.removeWorker(workerOf(engine.calls[0]) as string);
        expect(clock.pending).toBe(before - 1);
        answer(engine.calls[1] as HandCall);
        await (await long).text();
        answer(await engine.call(2));
        await (await held).text();
      }
      expect(clock.pending).toBe(0);
    }
  });
});
