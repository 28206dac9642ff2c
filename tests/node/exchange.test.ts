import type { Dispatcher } from "undici";
import { expect, test } from "vitest";
import { Stop } from "../../src/gateway/stop.js";
import { Cohort } from "../../src/node/gateway/cohort.js";
import { Exchange } from "../../src/node/gateway/exchange.js";

/** An exchange, and what a client of HTTP tells it. */
function begun() {
  const signal = new Stop();
  let done = 0;
  const onDone = () => {
    done++;
  };
  const exchange = new Exchange({ hasBody: true, signal, cohort: new Cohort(), onDone });
  exchange.answer.catch(() => {}); // whoever wants to know awaits it
  const raw = { rawHeaders: [], pause() {}, resume() {}, abort() {} };
  const controller = raw as unknown as Dispatcher.DispatchController;
  exchange.onRequestStart(controller);
  const start = (status: number) => exchange.onResponseStart(controller, status, {}, "");
  const data = (text: string) => exchange.onResponseData(controller, Buffer.from(text));
  const fail = () => exchange.onResponseError(controller, new Error("reset"));
  return { exchange, signal, start, data, fail, done: () => done };
}

test("an answer that breaks off in the turn in which it begins has begun: what came of it can be read", async () => {
  const { exchange, start, data, fail, done } = begun();
  start(503);
  data("half");
  fail();
  expect((await exchange.answer).status).toBe(503);
  expect(Buffer.from((await exchange.read()) as Uint8Array).toString()).toBe("half");
  await expect(exchange.read()).rejects.toThrow("the connection failed");
  expect(done()).toBe(1);
});

test("an answer whose request is given up in the turn in which it begins rejects with why", async () => {
  const { exchange, signal, start } = begun();
  start(200);
  const reason = new Error("no more");
  signal.abort(reason);
  await expect(exchange.answer).rejects.toBe(reason);
});

test("a connection that breaks before an answer begins rejects", async () => {
  const { exchange, fail, done } = begun();
  fail();
  await expect(exchange.answer).rejects.toThrow("the connection failed");
  expect(done()).toBe(1);
});
