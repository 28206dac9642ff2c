import { describe, expect, test, vi } from "vitest";
import { VirtualClock } from "../../src/sim/clock.js";
import { until } from "../support/until.js";
import { CHAT_URL, chat, DONE, handStage, isIdle, outcomesOf, token } from "./stage.js";

const text = async (response: Response) => response.text();

describe("a request ends once, and gives everything back", () => {
  test("when its stream has ended", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("hello", { stream: true }));
    const call = await engine.call();
    expect(router.stats()).toMatchObject({ inFlight: 1, selection: { bookings: 1 }, workers: [{ inFlight: 1 }] });
    call.begin().send(token("Hi"), token("!", "stop"), DONE).end();
    expect(await text(await response)).toBe(token("Hi") + token("!", "stop") + DONE);
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ completed: 1 });
  });

  test("when the protocol has ended, though the connection has not", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("hello", { stream: true }));
    (await engine.call()).begin().send(token("Hi", "stop"), DONE);
    const reader = (await response).body?.getReader();
    await reader?.read();
    await reader?.read();
    expect(isIdle(router)).toBe(true);
    await reader?.cancel();
    expect(outcomesOf(router)).toEqual({ completed: 1 });
  });

  test("when the caller goes while the engine is silent: within the tick, and the engine is told", async () => {
    for (const isDeaf of [false, true]) {
      const { engine, router } = handStage();
      engine.isDeaf = isDeaf;
      const controller = new AbortController();
      const response = await untilBegun(
        router.fetch(CHAT_URL, { ...chat("x", { stream: true }), signal: controller.signal }),
        engine,
      );
      const reading = response.text();
      const reason = new Error("gone");
      controller.abort(reason);
      expect(isIdle(router)).toBe(true);
      expect(engine.calls[0]?.init.signal.aborted).toBe(true);
      await expect(reading).rejects.toBe(reason);
      expect(outcomesOf(router)).toEqual({ aborted: 1 });
    }
  });

  test("when the caller goes before the headers are there; an answer that comes late is cancelled", async () => {
    const { engine, router } = handStage();
    engine.isDeaf = true;
    const controller = new AbortController();
    const response = router.fetch(CHAT_URL, { ...chat("x"), signal: controller.signal });
    const call = await engine.call();
    controller.abort();
    expect(isIdle(router)).toBe(true);
    await expect(response).rejects.toBe(controller.signal.reason);
    call.begin();
    await until(() => call.isCancelled, "the late answer is cancelled");
    expect(outcomesOf(router)).toEqual({ aborted: 1 });
  });

  test("when the caller cancels a body whose cancel() rejects: the error is counted once", async () => {
    const { engine, router } = handStage();
    const response = await untilBegun(router.fetch(CHAT_URL, chat("x", { stream: true })), engine);
    (await engine.call()).cancelError = new Error("cannot");
    await response.body?.cancel();
    expect(isIdle(router)).toBe(true);
    await until(() => router.stats().failedCancels === 1, "the error is counted");
    expect(engine.calls[0]?.isCancelled).toBe(true);
    expect(outcomesOf(router)).toEqual({ aborted: 1 });
  });

  test("when a stream breaks between headers and body: the client is told in the protocol", async () => {
    const { engine, router } = handStage();
    const response = await untilBegun(router.fetch(CHAT_URL, chat("x", { stream: true })), engine);
    engine.calls[0]?.break();
    const body = await response.text();
    expect(body).toMatch(
      /^data: \{"error":\{"message":"Expected the whole answer of worker \\"a\\", but the connection broke\.",/,
    );
    expect(body.endsWith(DONE)).toBe(true);
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
  });

  test("when an answer that is no stream breaks between headers and body: it has an error status", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("x"));
    (await engine.call()).begin("application/json").break();
    expect((await response).status).toBe(502);
    expect(await (await response).json()).toMatchObject({ error: { code: "KVROUTE_UPSTREAM_BROKEN" } });
    expect(isIdle(router)).toBe(true);
  });

  test("when an answer that is no stream breaks later: reading it fails", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("x"));
    const call = (await engine.call()).begin("application/json").send('{"choices"');
    await response;
    call.break();
    await expect((await response).text()).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_BROKEN" });
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
  });

  test("when the worker cannot be reached: 502, with the code of the failure and no address", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("x"));
    const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:8000"), { code: "ECONNREFUSED" });
    (await engine.call()).break(new TypeError("fetch failed", { cause }));
    expect([(await response).status, (await response).headers.get("retry-after")]).toEqual([502, null]);
    const { error } = await (await response).json();
    expect(error).toEqual({
      message: 'Expected an answer of worker "a", but none came: ECONNREFUSED.',
      type: "server_error",
      param: null,
      code: "KVROUTE_UPSTREAM_UNREACHABLE",
    });
    expect(isIdle(router)).toBe(true);
    expect(outcomesOf(router)).toEqual({ failed: 1 });
  });

  test("when the engine answers with an error, which passes as it is", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
    (await engine.call()).begin("application/json", 429).send('{"error":', '"busy"}').end();
    expect((await response).status).toBe(429);
    expect(await (await response).text()).toBe('{"error":"busy"}');
    expect(outcomesOf(router)).toEqual({ rejected: 1 });
    expect(isIdle(router)).toBe(true);
  });

  test("when the engine sends what is no answer, which passes as it is", async () => {
    const { engine, router } = handStage();
    const response = router.fetch(CHAT_URL, chat("x"));
    (await engine.call()).begin("application/json").send("<html>").end();
    expect(await (await response).text()).toBe("<html>");
    expect(outcomesOf(router)).toEqual({ failed: 1 });
    expect(isIdle(router)).toBe(true);
  });
});

describe("a stream that breaks off", () => {
  const events = [token("one"), token("two"), token("three")];

  test.each([
    ["between events", ""],
    ["in the middle of one", 'data: {"choices":[{"del'],
    ["in the middle of a character", Uint8Array.of(...new TextEncoder().encode("data: \u00e9")).subarray(0, 7)],
  ])("%s, tells so once and ends as the protocol ends", async (_, half) => {
    for (const how of ["break", "end"] as const) {
      const { engine, router } = handStage();
      const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
      const call = (await engine.call()).begin().send(...events, half);
      const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
      let body = "";
      const read = async () => {
        const { value } = await reader.read();
        body += new TextDecoder().decode(value);
        return value !== undefined;
      };
      for (const _ of events) await read();
      call[how]();
      while (await read());
      const tail = body.slice(events.join("").length);
      expect(body.startsWith(events.join(""))).toBe(true);
      expect(tail).toMatch(/^data: \{"error":\{[^\n]*"code":"KVROUTE_UPSTREAM_BROKEN"\}\}\n\ndata: \[DONE\]\n\n$/);
      expect(engine.calls).toHaveLength(1); // nothing is asked twice
      expect(outcomesOf(router)).toEqual({ failed: 1 });
      expect(isIdle(router)).toBe(true);
    }
  });
});

describe("a request that stalls", () => {
  const stallTimeoutMs = 1_000;

  test("ends when nothing has moved for so long, before the headers", async () => {
    const clock = new VirtualClock();
    const { engine, router } = handStage({ clock, stallTimeoutMs });
    const response = router.fetch(CHAT_URL, chat("x"));
    await engine.call();
    clock.advance(stallTimeoutMs - 1);
    expect(isIdle(router)).toBe(false);
    clock.advance(1);
    expect(isIdle(router)).toBe(true);
    expect((await response).status).toBe(504);
    expect(await (await response).json()).toMatchObject({ error: { code: "KVROUTE_UPSTREAM_STALLED" } });
    expect(engine.calls[0]?.init.signal.aborted).toBe(true);
    expect(outcomesOf(router)).toEqual({ stalled: 1 });
    expect(clock.pending).toBe(0);
  });

  test("ends in its protocol in the middle of a stream, and lives as long as it makes progress", async () => {
    const clock = new VirtualClock();
    const { engine, router } = handStage({ clock, stallTimeoutMs });
    const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
    const call = (await engine.call()).begin();
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    for (let minute = 0; minute < 20; minute++) {
      clock.advance(stallTimeoutMs - 1);
      call.send(token("on"));
      await reader.read();
      expect(router.stats().selection).toMatchObject({ bookings: 1, expiredBookings: 0 });
    }
    const last = reader.read();
    clock.advance(stallTimeoutMs);
    expect(new TextDecoder().decode((await last).value)).toContain("KVROUTE_UPSTREAM_STALLED");
    expect((await reader.read()).done).toBe(true);
    expect(outcomesOf(router)).toEqual({ stalled: 1 });
    expect(isIdle(router)).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("ends whole, when its engine has said all and does not close the connection", async () => {
    const clock = new VirtualClock();
    const { engine, router } = handStage({ clock, stallTimeoutMs });
    const response = router.fetch(CHAT_URL, chat("x", { stream: true }));
    (await engine.call()).begin().send(token("Hi", "stop"), DONE, ": more");
    const reader = ((await response).body as ReadableStream<Uint8Array>).getReader();
    for (const event of [token("Hi", "stop"), DONE]) {
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(event);
    }
    expect(outcomesOf(router)).toEqual({ completed: 1 });
    const last = reader.read();
    await new Promise((resolve) => setImmediate(resolve)); // it has read what the engine sent
    clock.advance(stallTimeoutMs);
    expect(new TextDecoder().decode((await last).value)).toBe(": more");
    expect((await reader.read()).done).toBe(true);
    expect(outcomesOf(router)).toEqual({ completed: 1 });
    expect(engine.calls[0]?.init.signal.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test("leaves no timer and no listener behind when it ends before", async () => {
    const clock = new VirtualClock();
    const { engine, router } = handStage({ clock });
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    const response = router.fetch(CHAT_URL, { ...chat("x", { stream: true }), signal });
    (await engine.call()).begin().send(token("Hi", "stop"), DONE).end();
    await (await response).text();
    const called = (spy: typeof added | typeof removed) => spy.mock.calls.map(([name, listener]) => [name, listener]);
    expect(called(removed)).toEqual(called(added));
    expect(called(added)).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});

/** Waits for the response to a request whose answer begins at once. */
async function untilBegun(
  response: Promise<Response>,
  engine: { call(): Promise<{ begin(): unknown }> },
): Promise<Response> {
  (await engine.call()).begin();
  return response;
}
