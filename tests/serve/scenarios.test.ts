import { describe, expect, test } from "vitest";
import type { Router } from "../../src/gateway/router.js";
import { DONE, isIdle, outcomesOf, token } from "../gateway/stage.js";
import { until } from "../support/until.js";
import { type Call, type HandServer, type Stage, serveStage } from "./stage.js";

// Incidents of other routers, over HTTP from end to end: tests/gateway/resilience.test.ts has them without a server.

const breakers = (router: Router) => router.stats().workers.map(({ breaker }) => breaker?.state);
const workerOf = (router: Router, id: string) => router.stats().workers.find((worker) => worker.id === id);

/** Waits for a request at whichever engine has it. */
async function callAtAny(engines: readonly HandServer[], before: number): Promise<Call> {
  const all = () => engines.reduce((sum, { calls }) => sum + calls.length, 0);
  await until(() => all() > before, `an engine has request ${before}`);
  return engines.find((engine) => engine.calls.at(-1)?.isGone === false)?.calls.at(-1) as Call;
}

// Scenario 10.
test("of five that wait, three are cancelled: two are left, loads are the same, and the two have their turn in order", async () => {
  const { engines, router, ask } = await serveStage(1, {}, { maxInFlight: 2 });
  const engine = engines[0] as HandServer;
  const running = [ask("0", { stream: true }), ask("1", { stream: true })];
  await engine.call(1);
  const before = router.stats();
  const controllers = [0, 1, 2, 3, 4].map(() => new AbortController());
  const queued: Promise<Response>[] = [];
  for (const [at, { signal }] of controllers.entries()) {
    queued.push(ask(`queued ${at}`, { stream: true, signal }));
    await until(() => router.stats().queue.waiting === at + 1, `${at + 1} wait`);
  }
  for (const at of [0, 2, 3]) {
    controllers[at]?.abort();
    await expect(queued[at]).rejects.toThrow("aborted");
  }
  await until(() => router.stats().queue.waiting === 2, "two wait");
  expect(router.stats()).toMatchObject({ inFlight: 2, selection: { bookings: 2 }, workers: before.workers });
  for (const [at, content] of ["queued 1", "queued 4"].entries()) {
    engine.calls[at]?.end(token("Hi", "stop"), DONE);
    expect((await engine.call(at + 2)).body).toContain(content);
  }
  for (const call of engine.calls.slice(2)) call.end(token("Hi", "stop"), DONE);
  for (const response of [...running, queued[1], queued[4]]) await (await response)?.text();
  expect(isIdle(router)).toBe(true);
  expect(engine.calls).toHaveLength(4);
});

// Scenario 14.
test("a stream that goes on for 20 minutes stays booked; one in which nothing moves does not", async () => {
  const { engines, router, clock, ask } = await serveStage(1, { stallTimeoutMs: 60_000 });
  const response = ask("x", { stream: true });
  const call = (await (engines[0] as HandServer).call()).send(token("0"));
  const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  for (let minute = 1; minute <= 20; minute++) {
    clock.advance(59_999);
    call.send(token(`${minute}`));
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(token(`${minute}`));
    expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 1, expiredBookings: 0 } });
  }
  clock.advance(60_000);
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("KVROUTE_UPSTREAM_STALLED");
  expect((await reader.read()).done).toBe(true);
  await until(() => call.isGone, "the engine is told");
  expect(isIdle(router)).toBe(true);
  expect(outcomesOf(router)).toEqual({ stalled: 1 });
});

// Scenario 16.
test("idle workers have equal parts of requests that come one after the other", async () => {
  const { engines, ask } = await serveStage(4);
  for (const engine of engines) engine.onCall = (call) => call.answer();
  for (let at = 0; at < 1_000; at++) await (await ask(`request ${at}`)).text();
  const counts = engines.map(({ calls }) => calls.length);
  expect(counts.reduce((sum, count) => sum + count)).toBe(1_000);
  for (const count of counts) expect(Math.abs(count - 250)).toBeLessThanOrEqual(37);
});

// Scenario 22, as far as one endpoint goes.
test("a refused connection frees its booking at once, and the request goes on elsewhere with one of its own", async () => {
  const { engines, router, receipts, records, ask } = await serveStage(2, { policy: "round-robin" });
  await engines[0]?.close();
  const response = ask("x");
  const call = await (engines[1] as HandServer).call();
  expect(receipts.map(({ worker, attempt }) => [worker, attempt])).toEqual([
    ["w0", 1],
    ["w1", 2],
  ]);
  expect(workerOf(router, "w0")).toMatchObject({ inFlight: 0, activeBlocks: 0, activePrefillTokens: 0 });
  expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 1 } });
  call.answer();
  expect((await response).status).toBe(200);
  expect((await response).headers.get("x-kvroute-worker")).toBe("w1");
  await (await response).text();
  expect(router.stats().retries).toMatchObject({ connect: 1 });
  expect(outcomesOf(router)).toEqual({ completed: 1 });
  expect(records).toMatchObject([{ status: 200, attempts: 2, worker: "w1" }]);
  expect(isIdle(router)).toBe(true);
});

describe("a breaker", () => {
  // Scenario 29.
  test("stays closed whatever clients do wrong", async () => {
    const { engines, router, ask } = await serveStage(1, { breaker: { failures: 1 } });
    (engines[0] as HandServer).onCall = (call) => call.answer(400);
    for (let at = 0; at < 20; at++) {
      const response = await ask(`${at}`);
      expect([response.status, await response.json()]).toEqual([400, { error: { message: "No.", type: "error" } }]);
    }
    expect(breakers(router)).toEqual(["closed"]);
    expect(engines[0]?.calls).toHaveLength(20);
  });

  test.each([429, 503])("is told nothing by a %i, but the request moves away", async (status) => {
    const { engines, router, ask } = await serveStage(2, { breaker: { failures: 1 }, policy: "round-robin" });
    (engines[0] as HandServer).onCall = (call) => call.answer(status, { "retry-after": "100" });
    (engines[1] as HandServer).onCall = (call) => call.answer();
    for (let at = 0; at < 4; at++) expect((await ask(`${at}`)).status).toBe(200);
    expect(engines[0]?.calls.length).toBeGreaterThan(0);
    expect(breakers(router)).toEqual(["closed", "closed"]);
  });

  test("that is half-open is not closed by a 400, and is by a success", async () => {
    const { engines, router, clock, ask } = await serveStage(1, {
      breaker: { failures: 1, openMs: 10_000 },
      retry: false,
    });
    const engine = engines[0] as HandServer;
    engine.onCall = (call) => call.break();
    expect((await ask("x")).status).toBe(502);
    expect(breakers(router)).toEqual(["open"]);
    const turnedAway = await ask("x");
    expect([turnedAway.status, turnedAway.headers.get("retry-after")]).toEqual([503, "10"]);
    expect(await turnedAway.json()).toMatchObject({ error: { code: "KVROUTE_NO_WORKER" } });
    clock.advance(10_000);
    engine.onCall = (call) => call.answer(400);
    expect((await ask("x")).status).toBe(400);
    expect(breakers(router)).toEqual(["half-open"]);
    engine.onCall = (call) => call.answer(200);
    expect((await ask("x")).status).toBe(200);
    expect(breakers(router)).toEqual(["closed"]);
    expect(engine.calls).toHaveLength(3);
  });
});

// Scenario 30.
test.each(["break", "end"] as const)(
  "a stream that %ss after three events is not asked for again: one error event, and the protocol's end",
  async (how) => {
    const { engines, router, ask } = await serveStage(2);
    const response = ask("x", { stream: true });
    const call = (await callAtAny(engines, 0)).send(token("1"), token("2"), token("3"));
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let read = "";
    while (read.length < token("1").length * 3) read += decoder.decode((await reader.read()).value);
    call[how]();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) read += decoder.decode(chunk.value);
    const begun = token("1") + token("2") + token("3");
    expect(read.startsWith(begun)).toBe(true);
    const tail = read.slice(begun.length);
    expect(tail).toMatch(/^data: \{"error":\{[^\n]*"code":"KVROUTE_UPSTREAM_BROKEN"\}\}\n\ndata: \[DONE\]\n\n$/);
    expect(engines.flatMap(({ calls }) => calls)).toHaveLength(1);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
    expect(isIdle(router)).toBe(true);
  },
);

describe("a worker that hangs", () => {
  const firstByteTimeoutMs = 1_000;
  const hang = async (options = {}): Promise<Stage> =>
    serveStage(2, { firstByteTimeoutMs, policy: "round-robin", ...options });

  // Scenario 32.
  test("loses its request after the time for the first byte, and another one has it", async () => {
    const { engines, router, clock, ask } = await hang();
    const response = ask("x", { stream: true });
    const first = await (engines[0] as HandServer).call();
    clock.advance(firstByteTimeoutMs - 1);
    expect(router.stats()).toMatchObject({ inFlight: 1, retries: { "first-byte-timeout": 0 } });
    clock.advance(1);
    const second = await (engines[1] as HandServer).call();
    await until(() => first.isGone, "the first engine is told");
    second.end(token("Hi", "stop"), DONE);
    expect(await (await response).text()).toBe(token("Hi", "stop") + DONE);
    expect(router.stats().retries).toMatchObject({ "first-byte-timeout": 1 });
    expect(workerOf(router, "w0")).toMatchObject({ outcomes: { stalled: 1 } });
    expect(isIdle(router)).toBe(true);
  });

  test("does not hold up who cannot be served elsewhere: 504", async () => {
    const { engines, router, clock, ask } = await hang({ retry: false });
    const response = ask("x");
    await (engines[0] as HandServer).call();
    clock.advance(firstByteTimeoutMs);
    expect((await response).status).toBe(504);
    expect(await (await response).json()).toMatchObject({ error: { code: "KVROUTE_UPSTREAM_STALLED" } });
    expect(isIdle(router)).toBe(true);
  });
});
