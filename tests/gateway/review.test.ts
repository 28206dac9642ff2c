// Faults that a reading of the router has found.

import { expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { RequestRecord, RouterWarning } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, DONE, handStage, isIdle, token } from "./stage.js";

const settle = async () => {
  for (let i = 0; i < 50; i++) await new Promise((r) => setImmediate(r));
};
const busy = (s = 429, h = {}) =>
  new Response("{}", { status: s, headers: { "content-type": "application/json", ...h } });

test("close(signal) ends a request that waits between tries", async () => {
  const clock = new VirtualClock();
  const { engine, router } = handStage({
    clock,
    retry: { backoffMs: 1000, maxBackoffMs: 1000, attempts: 3, jitter: 0 },
  });
  const asked = router.fetch(CHAT_URL, chat("x"));
  (await engine.call()).respond(busy());
  await until(() => router.stats().inFlight === 0, "between tries");
  await settle();
  let closed = false;
  void router.close({ signal: AbortSignal.abort() }).then(() => {
    closed = true;
  });
  await settle();
  expect(closed).toBe(true);
  expect((await asked).status).toBe(503);
});

test("close(signal) ends /v1/models", async () => {
  const { engine, router } = handStage({});
  engine.isDeaf = true;
  void router.fetch("http://k/v1/models").catch(() => {});
  await engine.call();
  let closed = false;
  void router.close({ signal: AbortSignal.abort() }).then(() => {
    closed = true;
  });
  await settle();
  expect(closed).toBe(true);
});

test("waitUntil that throws leaks nothing", async () => {
  const { engine, router } = handStage({});
  const c = {
    waitUntil: () => {
      throw new Error("no context");
    },
  };
  const p = router.handler(new Request(CHAT_URL, chat("x")), c).then(
    (r) => r.text(),
    () => {},
  );
  await settle();
  engine.calls[0]?.respond(new Response('{"choices":[]}', { headers: { "content-type": "application/json" } }));
  await p;
  expect(engine.calls.length).toBeLessThan(2);
  expect(isIdle(router)).toBe(true);
});

test("Retry-After while a probe is under way", async () => {
  const clock = new VirtualClock();
  const { engine, router } = handStage({ clock, breaker: { failures: 1, openMs: 1000 } });
  const first = router.fetch(CHAT_URL, chat("x"));
  (await engine.call()).respond(busy(500));
  await (await first).text();
  clock.advance(1000);
  void router.fetch(CHAT_URL, chat("x"));
  await engine.call(1);
  const r = await router.fetch(CHAT_URL, chat("x"));
  expect(r.status).toBe(503);
  expect(r.headers.get("retry-after")).not.toBe("Infinity");
});

test("record of a request that timed out in the queue", async () => {
  const clock = new VirtualClock();
  const records: RequestRecord[] = [];
  const { engine, router } = handStage({
    clock,
    queueTimeoutMs: 500,
    maxInFlight: 1,
    onRequest: (r) => void records.push(r),
  });
  void router.fetch(CHAT_URL, chat("x"));
  await engine.call();
  const second = router.fetch(CHAT_URL, chat("y"));
  await until(() => router.stats().queue.waiting === 1, "waits");
  clock.advance(500);
  expect((await second).status).toBe(429);
  expect(records[0]).toMatchObject({ queuedMs: 500, routingMs: 0 });
});

test("stale decision header of the engine", async () => {
  const { engine, router } = handStage({});
  const p = router.fetch("http://k/v1/files");
  (await engine.call()).respond(new Response("x", { headers: { "x-kvroute-decision": "retain" } }));
  expect((await p).headers.get("x-kvroute-decision")).toBe(null);
});

test("async listener that rejects", async () => {
  const seen: unknown[] = [];
  const warnings: RouterWarning[] = [];
  const on = (e: unknown) => void seen.push(e);
  const old = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", on);
  const { engine, router } = handStage({
    onRequest: async () => {
      throw new Error("db");
    },
    onWarning: (w) => void warnings.push(w),
  });
  const p = router.fetch("http://k/v1/files");
  (await engine.call()).respond(new Response("x"));
  await (await p).text();
  await settle();
  process.off("unhandledRejection", on);
  for (const l of old) process.on("unhandledRejection", l);
  expect(seen).toEqual([]);
  expect(warnings.length).toBe(1);
});

test("a booking of somebody else with the id of the router's next one", async () => {
  const { engine, router } = handStage({});
  router.selection.selectAndReserve({ sequenceHashes: [], islTokens: 1, selectionId: "1" });
  const p = router.fetch(CHAT_URL, chat("x"));
  await settle();
  if (engine.calls[0])
    engine.calls[0].respond(new Response('{"choices":[]}', { headers: { "content-type": "application/json" } }));
  const r = await p;
  const t = await r.text();
  expect([r.status, t, router.stats().selection.bookings]).toEqual([200, '{"choices":[]}', 1]);
});

test("retries counted only if tried", async () => {
  const { engine, router } = handStage({ retry: { backoffMs: 1000, maxBackoffMs: 1000 } });
  const stop = new AbortController();
  const p = router.fetch(CHAT_URL, { ...chat("x"), signal: stop.signal }).catch(() => {});
  (await engine.call()).respond(busy());
  await settle();
  stop.abort();
  await p;
  expect(engine.calls.length).toBe(1);
  expect(router.stats().retries["429"]).toBe(0);
});

test("Retry-After of a breaker that has nothing to do with the request", async () => {
  const { engine, router } = handStage({
    breaker: { failures: 1, openMs: 30000 },
    workers: [
      { id: "a", url: "http://a", models: ["m"] },
      { id: "b", url: "http://b", models: ["n"] },
    ],
  });
  const p1 = router.fetch(CHAT_URL, chat("x", { model: "n" }));
  (await engine.call(0)).respond(busy(500));
  await (await p1).text();
  await router.drain("a");
  const r = await router.fetch(CHAT_URL, chat("x"));
  expect(r.status).toBe(503);
  expect(r.headers.get("retry-after")).toBe(null);
});

test("a dotted path stays below /v1", async () => {
  const { engine, router } = handStage({});
  void router.answer({ method: "POST", path: "/v1/../sleep", query: "", headers: HeaderList.of([]) });
  void router.answer({ method: "POST", path: "/v1/%2e%2e/sleep", query: "", headers: HeaderList.of([]) });
  await settle();
  expect(engine.calls.map((c) => new URL(c.url).pathname).filter((p) => !p.startsWith("/v1/"))).toEqual([]);
});

test("x-should-retry false is believed where the error's body breaks", async () => {
  const { engine, router } = handStage({
    retry: {},
    workers: [
      { id: "a", url: "http://a" },
      { id: "b", url: "http://b" },
    ],
  });
  void router.fetch(CHAT_URL, chat("x")).catch(() => {});
  const body = new ReadableStream({
    start(c) {
      c.error(new TypeError("terminated"));
    },
  });
  (await engine.call()).respond(new Response(body, { status: 500, headers: { "x-should-retry": "false" } }));
  await settle();
  expect(engine.calls.length).toBe(1);
});

test("anthropic's envelope below /v1/messages", async () => {
  const { router } = handStage({ workers: [] });
  const r = await router.fetch("http://k/v1/messages/count_tokens", { method: "POST", body: "{}" });
  expect((await r.json()).type).toBe("error");
});

test("removal of the only worker ends a queued request; drain too", async () => {
  for (const how of ["removeWorker", "drain"] as const) {
    const { engine, router } = handStage({ maxInFlight: 1 });
    void router.fetch(CHAT_URL, chat("x")).catch(() => {});
    await engine.call();
    const p = router.fetch(CHAT_URL, chat("y"));
    await until(() => router.stats().queue.waiting === 1, "waits");
    void router[how]("a");
    expect((await p).status).toBe(503);
  }
});
test("close(signal) leaves no timer or listener of an answer whose last event came and whose connection is open", async () => {
  const clock = new VirtualClock();
  const { engine, router } = handStage({ clock });
  const p = router.fetch(CHAT_URL, chat("x", { stream: true }));
  (await engine.call()).begin().send(token("a", "stop"), DONE);
  const reader = ((await p).body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await settle();
  await router.close({ signal: AbortSignal.abort() });
  await settle();
  expect(isIdle(router)).toBe(true);
  expect(clock.pending).toBe(0);
});
