import { describe, expect, test } from "vitest";
import type { Receipt } from "../../src/gateway/receipt.js";
import type { RequestRecord } from "../../src/gateway/request-log.js";
import type { Router, RouterOptions, WorkerOptions } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, DONE, type HandCall, handStage, isIdle, outcomesOf, token } from "./stage.js";

const TWO: WorkerOptions[] = [
  { id: "a", url: "http://a" },
  { id: "b", url: "http://b" },
];
const RESPONSES_URL = "http://kvroute/v1/responses";

/** Two workers on a clock that the test moves. */
function stage(options: Partial<RouterOptions> = {}) {
  const clock = new VirtualClock();
  const records: RequestRecord[] = [];
  const parts = handStage({
    workers: TWO,
    retry: {},
    clock,
    random: () => 0.5,
    onRequest: (record) => records.push(record),
    ...options,
  });
  return { ...parts, clock, records };
}

const workerOf = (call: HandCall) => new URL(call.url).hostname;
const answerJson = (call: HandCall, status = 200, headers: Record<string, string> = {}) =>
  call.respond(
    new Response(JSON.stringify({ choices: [] }), {
      status,
      headers: { "content-type": "application/json", ...headers },
    }),
  );
const breakerOf = (router: Router, id: string) =>
  router.stats().workers.find((worker) => worker.id === id)?.breaker?.state;
const refused = () => new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });

/** Lets timers and the promises behind them run. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
}

describe("a request that no worker has answered goes to another one", () => {
  // Scenario 22, as far as one endpoint goes.
  test("when the connection is refused: its booking is freed at once", async () => {
    const { engine, router, records } = stage();
    const response = router.fetch(CHAT_URL, chat("x"));
    const first = await engine.call(0);
    first.break(refused());
    const second = await engine.call(1);
    expect(workerOf(second)).not.toBe(workerOf(first));
    expect(second.body).toBe(first.body);
    expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 1 } });
    expect(router.stats().workers.find(({ id }) => id === workerOf(first))).toMatchObject({
      inFlight: 0,
      activeBlocks: 0,
    });
    answerJson(second);
    expect((await response).status).toBe(200);
    await (await response).text();
    expect(outcomesOf(router)).toEqual({ completed: 1 });
    expect(router.stats().retries).toMatchObject({ connect: 1 });
    expect(records).toMatchObject([{ status: 200, outcome: "completed", attempts: 2, worker: workerOf(second) }]);
    expect(isIdle(router)).toBe(true);
  });

  // Scenario 32.
  test("when headers never come: after the time for the first byte", async () => {
    const { engine, router, clock } = stage({ firstByteTimeoutMs: 1_000 });
    const response = router.fetch(CHAT_URL, chat("x"));
    const first = await engine.call(0);
    await pass(clock, 999);
    expect(engine.calls).toHaveLength(1);
    await pass(clock, 1);
    const second = await engine.call(1);
    expect(workerOf(second)).not.toBe(workerOf(first));
    expect(first.init.signal.aborted).toBe(true);
    answerJson(second);
    expect((await response).status).toBe(200);
    expect(router.stats().retries).toMatchObject({ "first-byte-timeout": 1 });
  });

  test.each([429, 503])("when it is answered with %i, without a word to the breaker", async (status) => {
    const { engine, router } = stage({ breaker: { failures: 1 } });
    const response = router.fetch(RESPONSES_URL, { ...chat("x"), body: JSON.stringify({ model: "m", input: "x" }) });
    const first = await engine.call(0);
    answerJson(first, status);
    answerJson(await engine.call(1));
    expect((await response).status).toBe(200);
    expect(breakerOf(router, workerOf(first))).toBe("closed");
  });

  test("when it fails with 500 or breaks before its first byte, where that may be repeated", async () => {
    const { engine, router } = stage({ workers: [...TWO, { id: "c", url: "http://c" }] });
    const response = router.fetch(CHAT_URL, chat("x"));
    answerJson(await engine.call(0), 500);
    (await engine.call(1)).begin("application/json").break();
    answerJson(await engine.call(2));
    expect((await response).status).toBe(200);
    const stored = router.fetch(RESPONSES_URL, { ...chat("x"), body: JSON.stringify({ model: "m", input: "x" }) });
    answerJson(await engine.call(3), 500);
    expect((await stored).status).toBe(500); // it may have been stored
    expect(engine.calls).toHaveLength(4);
  });

  // Scenario 30.
  test("but not when a byte of a stream has come: one error event, and the protocol's end", async () => {
    const { engine, router } = stage();
    const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
    const call = await engine.call(0);
    call.begin().send(token("1"), token("2"), token("3"));
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    let read = "";
    for (let at = 0; at < 3; at++) read += new TextDecoder().decode((await reader.read()).value);
    call.break();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      read += new TextDecoder().decode(chunk.value);
    expect(read.startsWith(token("1") + token("2") + token("3"))).toBe(true);
    expect(read.match(/KVROUTE_UPSTREAM_BROKEN/g)).toHaveLength(1);
    expect(read.endsWith(DONE)).toBe(true);
    expect(engine.calls).toHaveLength(1);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
  });

  test("at most as often as it may; the last answer is the client's, as it is", async () => {
    const { engine, router, records } = stage({ retry: { attempts: 2 } });
    const response = router.fetch(CHAT_URL, chat("x"));
    answerJson(await engine.call(0), 429);
    answerJson(await engine.call(1), 429, { "retry-after": "7" });
    expect((await response).status).toBe(429);
    expect((await response).headers.get("retry-after")).toBe("7");
    await (await response).text();
    expect(engine.calls).toHaveLength(2);
    expect(records).toMatchObject([{ status: 429, outcome: "rejected", attempts: 2 }]);
    expect(outcomesOf(router)).toEqual({ rejected: 1 });
  });

  test("to the same one where there is no other, after a pause, which an abort ends", async () => {
    const { engine, router, clock } = stage({ workers: [{ id: "a", url: "http://a" }], retry: { backoffMs: 100 } });
    const controller = new AbortController();
    const response = router.fetch(CHAT_URL, { ...chat("x"), signal: controller.signal });
    (await engine.call(0)).break(refused());
    await until(() => clock.nextMs === 100, "it pauses");
    expect(isIdle(router)).toBe(true);
    await pass(clock, 100);
    (await engine.call(1)).break(refused());
    await until(() => clock.nextMs !== null, "it pauses again");
    controller.abort();
    await expect(response).rejects.toBe(controller.signal.reason);
    expect(clock.pending).toBe(0);
    expect(engine.calls).toHaveLength(2);
    expect(outcomesOf(router)).toEqual({ aborted: 1 });
    await router.close();
  });

  test("never, if that is said", async () => {
    const { engine, router } = stage({ retry: false });
    const response = router.fetch(CHAT_URL, chat("x"));
    (await engine.call(0)).break(refused());
    expect((await response).status).toBe(502);
    expect(engine.calls).toHaveLength(1);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
  });
});

describe("a worker's breaker", () => {
  /** Fails the next request at every worker. */
  async function fail(router: Router, calls: HandCall[], how: (call: HandCall) => void): Promise<number> {
    const from = calls.length;
    const response = router.fetch(CHAT_URL, chat(`${from}`));
    await until(() => calls.length > from, "a worker is asked");
    how(calls[from] as HandCall);
    const { status } = await response;
    await (await response).text();
    return status;
  }

  // Scenario 29.
  test("stays closed whatever clients do wrong", async () => {
    const { engine, router } = stage({ retry: false, breaker: { failures: 2 } });
    for (let at = 0; at < 20; at++) {
      expect(await fail(router, engine.calls, (call) => answerJson(call, 400))).toBe(400);
    }
    expect(router.stats().workers.map(({ breaker }) => breaker?.state)).toEqual(["closed", "closed"]);
  });

  test("opens by failures in a row, lets one probe through, and closes by its success; a 400 closes nothing", async () => {
    const one = { workers: [{ id: "a", url: "http://a" }], retry: false as const };
    const { engine, router, clock } = stage({ ...one, breaker: { failures: 2, openMs: 10_000 } });
    for (let at = 0; at < 2; at++) expect(await fail(router, engine.calls, (call) => call.break(refused()))).toBe(502);
    expect(breakerOf(router, "a")).toBe("open");
    expect(router.isReady).toBe(false);
    const turnedAway = await router.fetch(CHAT_URL, chat("x"));
    expect([turnedAway.status, turnedAway.headers.get("retry-after")]).toEqual([503, "10"]);
    expect(await turnedAway.json()).toMatchObject({ error: { code: "KVROUTE_NO_WORKER" } });
    await pass(clock, 10_000);
    expect(breakerOf(router, "a")).toBe("half-open");
    expect(await fail(router, engine.calls, (call) => answerJson(call, 400))).toBe(400);
    expect(breakerOf(router, "a")).toBe("half-open");
    const probe = router.fetch(CHAT_URL, chat("probe", { stream: true }));
    const call = await engine.call(3);
    expect((await router.fetch(CHAT_URL, chat("y"))).status).toBe(503); // one at a time
    call.begin().send(token("Hi"));
    await probe;
    expect(breakerOf(router, "a")).toBe("closed"); // though the stream goes on
    call.send(DONE).end();
    await (await probe).text();
    expect(isIdle(router)).toBe(true);
  });

  test("keeps a worker from requests that others can have", async () => {
    const { engine, router } = stage({ breaker: { failures: 1 } });
    const response = router.fetch(CHAT_URL, chat("x"));
    const first = await engine.call(0);
    first.break(refused());
    answerJson(await engine.call(1));
    await response;
    for (let at = 2; at < 12; at++) {
      const next = router.fetch(CHAT_URL, chat(`${at}`));
      const call = await engine.call(at);
      expect(workerOf(call)).not.toBe(workerOf(first));
      answerJson(call);
      await (await next).text();
    }
  });
});

describe("requests wait while all workers are busy", () => {
  const busy = { workers: [{ id: "a", url: "http://a", maxInFlight: 2 }] };
  const finish = (call: HandCall) => call.begin().send(token("Hi", "stop"), DONE).end();

  // Scenario 10.
  test("those that are cancelled leave nothing behind; the others have their turn in order", async () => {
    const { engine, router } = stage(busy);
    const running = [0, 1].map((at) => router.fetch(CHAT_URL, chat(`${at}`, { stream: true })));
    await engine.call(1);
    const before = router.stats();
    const controllers = [2, 3, 4, 5, 6].map(() => new AbortController());
    const queued = controllers.map(({ signal }, at) =>
      router.fetch(CHAT_URL, { ...chat(`queued ${at}`, { stream: true }), signal }),
    );
    await until(() => router.stats().queue.waiting === 5, "five wait");
    expect(router.stats()).toMatchObject({ inFlight: 2, selection: { bookings: 2 }, workers: before.workers });
    for (const at of [0, 2, 3]) controllers[at]?.abort();
    expect(router.stats().queue.waiting).toBe(2);
    expect(router.stats()).toMatchObject({ inFlight: 2, selection: { bookings: 2 }, workers: before.workers });
    for (const at of [0, 2, 3]) await expect(queued[at]).rejects.toBe(controllers[at]?.signal.reason);
    for (const call of engine.calls.slice(0, 2)) finish(call);
    for (const response of running) await (await response).text();
    expect((await engine.call(2)).body).toContain("queued 1");
    expect((await engine.call(3)).body).toContain("queued 4");
    for (const call of engine.calls.slice(2)) finish(call);
    for (const at of [1, 4]) await (await (queued[at] as Promise<Response>)).text();
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ completed: 4 }); // of those that a worker has had
  });

  test("until the time is up, and no more than may wait: 429, with a time to come back", async () => {
    const { engine, router, clock, records } = stage({ ...busy, maxQueued: 1, queueTimeoutMs: 5_000 });
    const running = [0, 1].map((at) => router.fetch(CHAT_URL, chat(`${at}`, { stream: true })));
    await engine.call(1);
    const waiting = router.fetch(CHAT_URL, chat("waits"));
    await until(() => router.stats().queue.waiting === 1, "one waits");
    const full = await router.fetch(CHAT_URL, chat("one too many"));
    expect(full.status).toBe(429);
    expect(Number(full.headers.get("retry-after"))).toBeGreaterThan(0);
    const type = "rate_limit_error";
    expect(await full.json()).toMatchObject({ error: { type, code: "KVROUTE_GATEWAY_QUEUE_FULL" } });
    const message = await router.fetch("http://kvroute/v1/messages", chat("and another one"));
    expect([message.status, await message.json()]).toMatchObject([429, { type: "error", error: { type } }]);
    await pass(clock, 5_000);
    expect((await waiting).status).toBe(429);
    expect(await (await waiting).json()).toMatchObject({ error: { type, code: "KVROUTE_GATEWAY_QUEUE_TIMEOUT" } });
    expect(engine.calls).toHaveLength(2);
    for (const call of engine.calls) finish(call);
    for (const response of running) await (await response).text();
    expect(isIdle(router)).toBe(true);
    expect(records.map(({ outcome, status }) => [outcome, status])).toEqual([
      ["refused", 429],
      ["refused", 429],
      ["refused", 429],
      ["completed", 200],
      ["completed", 200],
    ]);
  });

  test("in every policy", async () => {
    const workers = ["a", "b"].map((id) => ({ id, url: `http://${id}`, maxInFlight: 1 }));
    for (const policy of ["kv", "round-robin", "random", "least-loaded", "session-pin", "longest-prefix"] as const) {
      const { engine, router } = stage({ workers, policy });
      const responses = [0, 1, 2].map(() => router.fetch(CHAT_URL, chat("the same", { stream: true })));
      await engine.call(1);
      await until(() => router.stats().queue.waiting === 1, "one waits");
      expect(engine.calls.map(workerOf).sort()).toEqual(["a", "b"]);
      finish(engine.calls[1] as HandCall);
      await (await (responses[1] as Promise<Response>)).text();
      expect(workerOf(await engine.call(2))).toBe(workerOf(engine.calls[1] as HandCall));
      for (const at of [0, 2]) finish(engine.calls[at] as HandCall);
      for (const response of responses) if (!(await response).bodyUsed) await (await response).text();
      expect(isIdle(router)).toBe(true);
    }
  });

  test("for a total as well, and they are told when nobody is left to wait for", async () => {
    const { engine, router } = stage({ maxInFlight: 1 });
    const running = router.fetch(CHAT_URL, chat("0", { stream: true }));
    await engine.call(0);
    const waiting = router.fetch(CHAT_URL, chat("1"));
    await until(() => router.stats().queue.waiting === 1, "one waits");
    router.removeWorker("a");
    void router.drain("b");
    expect((await waiting).status).toBe(503);
    finish(engine.calls[0] as HandCall);
    await (await running).text();
    expect(isIdle(router)).toBe(true);
  });

  test("a router that closes serves those that wait; cut off, they are told", async () => {
    const { engine, router } = stage(busy);
    const running = [0, 1, 2].map((at) => router.fetch(CHAT_URL, chat(`${at}`, { stream: true })));
    await until(() => router.stats().queue.waiting === 1, "one waits");
    const controller = new AbortController();
    const closing = router.close({ signal: controller.signal });
    finish(engine.calls[0] as HandCall);
    await (await (running[0] as Promise<Response>)).text();
    await engine.call(2);
    controller.abort();
    await closing;
    for (const at of [1, 2]) {
      const response = await (running[at] as Promise<Response>);
      expect(await response.text()).toContain("KVROUTE_GATEWAY_CLOSED");
    }
    expect(isIdle(router)).toBe(true);
  });
});

describe("a booking", () => {
  // Scenario 14.
  test("lives as long as its stream makes progress, and not when nothing moves", async () => {
    const { engine, router, clock, records } = stage({ stallTimeoutMs: 60_000, firstByteTimeoutMs: 60_000 });
    const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
    const call = await engine.call(0);
    call.begin();
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    for (let minutes = 0; minutes < 20; minutes++) {
      await pass(clock, 59_999);
      call.send(token("Hi"));
      expect((await reader.read()).done).toBe(false);
      expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 1, expiredBookings: 0 } });
    }
    const last = reader.read();
    await pass(clock, 60_000);
    expect(new TextDecoder().decode((await last).value)).toContain("KVROUTE_UPSTREAM_STALLED");
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ stalled: 1 });
    expect(records).toMatchObject([{ outcome: "stalled", status: 200 }]);
  });
});

describe("idle workers", () => {
  // Scenario 16.
  test("have equal parts of requests that come one after the other", async () => {
    const workers = ["a", "b", "c", "d"].map((id) => ({ id, url: `http://${id}` }));
    const counts = new Map<string, number>();
    const { engine, router } = stage({ workers });
    for (let at = 0; at < 1_000; at++) {
      const response = router.fetch(CHAT_URL, chat(`request ${at}`));
      const call = await engine.call(at);
      counts.set(workerOf(call), (counts.get(workerOf(call)) ?? 0) + 1);
      answerJson(call);
      await (await response).text();
    }
    for (const count of counts.values()) expect(Math.abs(count - 250)).toBeLessThanOrEqual(37);
    expect(counts.size).toBe(4);
  });
});

describe("receipts", () => {
  test("say in headers where an answer comes from, and to a listener what each worker would have cost", async () => {
    const receipts: Receipt[] = [];
    const { engine, router, records } = stage({ onDecision: (receipt) => receipts.push(receipt) });
    const turn = async (at: number, session: string) => {
      const init = chat("x".repeat(4_096));
      const response = router.fetch(CHAT_URL, { ...init, headers: { ...init.headers, "x-session-id": session } });
      answerJson(await engine.call(at), 200, { "server-timing": "engine;dur=3" });
      await (await response).text();
      return (await response).headers;
    };
    const first = await turn(0, "s");
    expect(first.get("x-kvroute-decision")).toBe("initialize");
    expect(first.get("x-kvroute-cached-tokens")).toBe("0");
    const second = await turn(1, "s");
    expect(second.get("x-kvroute-worker")).toBe(first.get("x-kvroute-worker"));
    expect(second.get("x-kvroute-decision")).toBe("retain");
    expect(Number(second.get("x-kvroute-cached-tokens"))).toBeGreaterThan(900);
    expect(second.get("server-timing")).toMatch(/^engine;dur=3, kvroute;dur=\d+\.\d{3}$/);
    expect(receipts.map(({ explanation }) => explanation?.candidates.length)).toEqual([2, 2]);
    expect(records.map(({ decision }) => decision)).toEqual(["initialize", "retain"]);
    router.removeWorker(first.get("x-kvroute-worker") as string);
    expect((await turn(2, "s")).get("x-kvroute-decision")).toBe("initialize"); // what a removed worker had is forgotten
  });

  test("say that a session has spilled when its worker is busy, and is back later", async () => {
    const workers = TWO.map((worker) => ({ ...worker, maxInFlight: 1 }));
    const { engine, router } = stage({ workers });
    const ask = (content: string) =>
      router.fetch(CHAT_URL, { ...chat(content, { stream: true }), headers: { "x-session-id": "s" } });
    const finish = (call: HandCall) => call.begin().send(token("Hi", "stop"), DONE).end();
    const first = ask("1");
    const home = workerOf(await engine.call(0));
    finish(engine.calls[0] as HandCall);
    await (await first).text();
    const second = ask("2");
    expect(workerOf(await engine.call(1))).toBe(home);
    const third = ask("3");
    expect(workerOf(await engine.call(2))).not.toBe(home);
    for (const call of engine.calls.slice(1)) finish(call);
    expect((await second).headers.get("x-kvroute-decision")).toBe("retain");
    expect((await third).headers.get("x-kvroute-decision")).toBe("spill");
  });

  test("are left out where they are not wanted", async () => {
    const { engine, router } = stage({ receipts: false });
    const response = router.fetch(CHAT_URL, chat("x"));
    answerJson(await engine.call(0));
    const names = [...(await response).headers.keys()];
    expect(names.filter((name) => name.startsWith("x-kvroute") || name === "server-timing")).toEqual([]);
  });

  test("a listener that throws fails no request, and is a warning", async () => {
    const warnings: string[] = [];
    const { engine, router } = stage({
      onDecision: () => {
        throw new Error("oops");
      },
      onWarning: ({ name, message }) => warnings.push(`${name}: ${message}`),
    });
    const response = router.fetch(CHAT_URL, chat("x"));
    answerJson(await engine.call(0));
    expect((await response).status).toBe(200);
    expect(warnings).toEqual([expect.stringContaining("KVROUTE_WARNING_LISTENER: Expected onDecision")]);
  });
});
