import { describe, expect, test, vi } from "vitest";
import type { source } from "../../src/gateway/load-desk.js";
import type { RequestRecord } from "../../src/gateway/request-log.js";
import type { GatewayRequest, RouterOptions } from "../../src/gateway/router.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";

type Load = typeof source.import;

/** What answers requests, on its way: it arrives, or fails to, when a test says so. */
class Delivery {
  /** How often it was asked for. */
  asked = 0;
  #ends: { resolve(): void; reject(reason: unknown): void }[] = [];

  readonly import: Load = async () => {
    this.asked++;
    await new Promise<void>((resolve, reject) => this.#ends.push({ resolve, reject }));
    return import("../../src/gateway/desk.js");
  };

  /** Waits until it was asked for so often. */
  async isAskedFor(times: number): Promise<void> {
    await until(() => this.asked === times, `it was asked for ${times} times`);
  }

  arrive(): void {
    for (const { resolve } of this.#ends.splice(0)) resolve();
  }

  fail(): void {
    for (const { reject } of this.#ends.splice(0)) reject(new TypeError("Failed to fetch"));
  }
}

/** A router of a program in which none has had a request. */
async function freshStage(options: Partial<RouterOptions> = {}) {
  vi.resetModules();
  const delivery = new Delivery();
  const { loadDesk, source } = await import("../../src/gateway/load-desk.js");
  vi.spyOn(source, "import").mockImplementation(delivery.import);
  const stage = await import("./stage.js");
  const records: RequestRecord[] = [];
  const { router, engine } = stage.handStage({ onRequest: (record) => records.push(record), ...options });
  const { HeaderList } = await import("../../src/gateway/header-list.js");
  const bytes = new TextEncoder().encode(String(stage.chat("hello").body));
  const path = "/v1/chat/completions";
  const request: GatewayRequest = { method: "POST", path, query: "", headers: HeaderList.of([]), bytes };
  const post = (signal?: AbortSignal) =>
    router.fetch(stage.CHAT_URL, { ...stage.chat("hello"), ...(signal && { signal }) });
  return { ...stage, delivery, router, engine, records, loadDesk, request, post };
}

const closedText = async (response: Response) => [response.status, (await response.json()).error.code];

describe("what answers requests", () => {
  test("is loaded by the first of them, not by a router", async () => {
    const { delivery, router, engine, post } = await freshStage();
    expect(router.isReady).toBe(true);
    expect(router.stats()).toMatchObject({ inFlight: 0, requests: [] });
    router.addWorker({ id: "b", url: "http://b" });
    router.removeWorker("b");
    expect(delivery.asked).toBe(0);
    const response = post();
    await delivery.isAskedFor(1);
    expect(engine.calls).toHaveLength(0);
    delivery.arrive();
    (await engine.call()).respond(Response.json({ ok: true }));
    expect(await (await response).json()).toEqual({ ok: true });
    expect(await router.fetch("http://kvroute/v2/x").then(({ status }) => status)).toBe(404);
    expect(delivery.asked).toBe(1);
  });

  test("changes nothing of the stats by being there", async () => {
    const { delivery, router, loadDesk, chat } = await freshStage();
    const before = router.stats();
    const loading = loadDesk();
    delivery.arrive();
    await loading;
    await router.fetch("http://kvroute/v1/chat/completions", { ...chat("x"), body: "no JSON" });
    const { requests, timings, ...after } = router.stats();
    expect({ requests: requests.length, timings: timings.request.count }).toEqual({ requests: 1, timings: 1 });
    expect({ ...after, requests: [], timings: before.timings }).toEqual(before);
  });

  test("is waited for by all that come before it is there", async () => {
    const { delivery, router, engine, post, outcomesOf, isIdle } = await freshStage();
    const responses = Array.from({ length: 100 }, () => post());
    await delivery.isAskedFor(100);
    delivery.arrive();
    for (let index = 0; index < 100; index++) (await engine.call(index)).respond(Response.json({ ok: true }));
    const texts = responses.map(async (response) => (await response).text());
    expect(await Promise.all(texts)).toEqual(new Array(100).fill('{"ok":true}'));
    expect(outcomesOf(router)).toEqual({ completed: 100 });
    expect(isIdle(router)).toBe(true);
  });

  test("is waited for by nobody who comes later: the worker is asked as soon as when it was always there", async () => {
    const { delivery, router, engine, loadDesk, request, handStage } = await freshStage();
    const loading = loadDesk();
    await delivery.isAskedFor(1);
    delivery.arrive();
    await loading;
    const turns = async (send: () => unknown, calls: readonly unknown[]) => {
      const before = calls.length;
      send();
      let turns = 0;
      for (; calls.length === before && turns < 100; turns++) await Promise.resolve();
      return turns;
    };
    const first = await turns(() => router.answer(request), engine.calls);
    expect(first).toBeLessThan(100);
    expect(await turns(() => router.answer(request), engine.calls)).toBe(first);
    const other = handStage();
    expect(await turns(() => other.router.answer(request), other.engine.calls)).toBe(first);
  });

  test("is loaded by watch, which begins to ask for health when it is there", async () => {
    const clock = new VirtualClock();
    const { delivery, router, engine } = await freshStage({ clock, health: { jitter: 0 } });
    router.watch();
    router.addWorker({ id: "b", url: "http://b" });
    await delivery.isAskedFor(1);
    expect(clock.pending).toBe(0);
    delivery.arrive();
    await until(() => clock.pending > 0, "checks are due");
    clock.advance(0);
    await engine.call(1);
    expect(engine.calls.map(({ url }) => url)).toEqual(["http://a/health", "http://b/health"]);
    await router.close();
  });

  test("is loaded by a server of Node before it listens", async () => {
    const { delivery, router, engine, CHAT_URL, chat } = await freshStage();
    const { serveGateway } = await import("../../src/node/serve-gateway.js");
    const serving = serveGateway({ gateway: router });
    await delivery.isAskedFor(1);
    delivery.arrive();
    const server = await serving;
    const response = fetch(CHAT_URL.replace("http://kvroute", server.url), chat("hello"));
    (await engine.call()).respond(Response.json({ ok: true }));
    expect(await (await response).json()).toEqual({ ok: true });
    expect(delivery.asked).toBe(1);
    await server.close();
  });

  test("asks nobody for health where the router was closed meanwhile", async () => {
    const clock = new VirtualClock();
    const { delivery, router, engine, loadDesk } = await freshStage({ clock, health: { jitter: 0 } });
    router.watch();
    await delivery.isAskedFor(1);
    await router.close();
    const loading = loadDesk();
    delivery.arrive();
    await loading;
    await new Promise((resolve) => setImmediate(resolve));
    expect([clock.pending, engine.calls.length, delivery.asked]).toEqual([0, 0, 2]);
  });
});

describe("a request that waits for it", () => {
  test("ends at once with the reason of its caller, and is counted", async () => {
    const { delivery, router, engine, records, post, request, isIdle } = await freshStage();
    const controller = new AbortController();
    const reason = new Error("gone");
    const response = post(controller.signal);
    const answer = router.answer({ ...request, signal: controller.signal });
    const explanation = router.explain({ ...request, signal: controller.signal });
    await delivery.isAskedFor(3);
    controller.abort(reason);
    for (const rejected of [response, answer, explanation]) await expect(rejected).rejects.toBe(reason);
    expect(records).toMatchObject([
      { status: 499, outcome: "aborted", worker: undefined },
      { status: 499, outcome: "aborted", worker: undefined },
    ]);
    await router.close(); // nothing is under way
    delivery.arrive();
    await new Promise((resolve) => setImmediate(resolve));
    expect(engine.calls).toHaveLength(0);
    expect(isIdle(router)).toBe(true);
  });

  test("whose caller has gone before does not wait", async () => {
    const { router, records, post } = await freshStage();
    const reason = new Error("gone");
    await expect(post(AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(records).toMatchObject([{ status: 499, outcome: "aborted" }]);
    await router.close();
  });

  test("is waited for by close, and served, since it came before; nobody is asked for health any more", async () => {
    const clock = new VirtualClock();
    const { delivery, router, engine, records, post } = await freshStage({ clock, health: { jitter: 0 } });
    const response = post();
    await delivery.isAskedFor(1);
    let isClosed = false;
    const closing = router.close().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    expect(await closedText(await post())).toEqual([503, "KVROUTE_GATEWAY_CLOSED"]);
    delivery.arrive();
    (await engine.call()).respond(Response.json({ ok: true }));
    expect(await (await response).json()).toEqual({ ok: true });
    await closing;
    expect(records).toMatchObject([
      { status: 503, outcome: "refused", error: "KVROUTE_GATEWAY_CLOSED" },
      { status: 200, outcome: "completed" },
    ]);
    expect(clock.pending).toBe(0);
    expect(engine.calls).toHaveLength(1);
  });

  test("is ended by the signal of close, though it may never load", async () => {
    const { delivery, router, records, post } = await freshStage();
    const response = post();
    await delivery.isAskedFor(1);
    await router.close({ signal: AbortSignal.abort() });
    expect(await closedText(await response)).toEqual([503, "KVROUTE_GATEWAY_CLOSED"]);
    expect(records).toMatchObject([{ status: 503, outcome: "refused" }]);
  });

  test("keeps what it was given, whatever its caller does with that meanwhile", async () => {
    const { delivery, router, engine, chat, CHAT_URL } = await freshStage();
    const body = new TextEncoder().encode(String(chat("hello").body));
    const sent = new TextDecoder().decode(body);
    const response = router.fetch(CHAT_URL, { ...chat("hello"), body });
    await delivery.isAskedFor(1);
    body.fill(0);
    delivery.arrive();
    const call = await engine.call();
    expect(call.body).toBe(sent);
    call.respond(Response.json({}));
    await response;
  });
});

describe("where it does not load", () => {
  test("each request that waits is rejected with why, and counted; the next one tries again", async () => {
    const { delivery, router, engine, records, post, request, isIdle, outcomesOf } = await freshStage();
    const waiting = [
      post(),
      router.answer(request),
      router.explain(request),
      router.handler(new Request("http://kvroute/v1/models")),
    ];
    await delivery.isAskedFor(4);
    delivery.fail();
    const rejections = await Promise.all(waiting.map((promise) => promise.then(String, (error) => error)));
    for (const error of rejections) {
      expect(error).toMatchObject({ code: "KVROUTE_GATEWAY_NOT_LOADED", status: 503, cause: expect.any(Error) });
      expect(error.message).toMatch(/^Expected to load the part of kvroute that answers requests, but got .+\.$/);
    }
    expect(records.map(({ status, error, outcome }) => [status, error, outcome])).toEqual(
      new Array(3).fill([503, "KVROUTE_GATEWAY_NOT_LOADED", "refused"]),
    );
    expect(isIdle(router)).toBe(true);
    const response = post();
    await delivery.isAskedFor(5);
    delivery.arrive();
    (await engine.call()).respond(Response.json({ ok: true }));
    expect(await (await response).json()).toEqual({ ok: true });
    expect(outcomesOf(router)).toEqual({ completed: 1 });
    await router.close();
  });

  test("watch says nothing, and the first request tries again", async () => {
    const clock = new VirtualClock();
    const { delivery, router, engine, post } = await freshStage({ clock, health: { jitter: 0 } });
    router.watch();
    await delivery.isAskedFor(1);
    delivery.fail();
    await new Promise((resolve) => setImmediate(resolve));
    expect(clock.pending).toBe(0);
    const response = post();
    await delivery.isAskedFor(2);
    delivery.arrive();
    (await engine.call()).respond(Response.json({ ok: true }));
    expect(await (await response).json()).toEqual({ ok: true });
    expect(clock.pending).toBeGreaterThan(0);
    await router.close();
  });
});
