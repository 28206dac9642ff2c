import { expect, test } from "vitest";
import { until } from "../support/until.js";
import { CHAT_URL, chat, handStage, isIdle } from "./stage.js";

const turn = () => new Promise((resolve) => setImmediate(resolve)); // Node tells of warnings a turn later
const MANY = 50;

/** Gives the warnings of the process meanwhile. */
async function warningsOf(run: () => Promise<void>): Promise<Error[]> {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  await run();
  await turn();
  process.off("warning", listen);
  return warnings;
}

test("fifty workers are asked for their models without a warning of the process, and all hear that the caller goes", async () => {
  const warnings = await warningsOf(async () => {
    const workers = Array.from({ length: MANY }, (_, at) => ({ id: `${at}`, url: `http://w${at}` }));
    const { engine, router } = handStage({ workers });
    const controller = new AbortController();
    const listed = router.fetch("http://kvroute/v1/models", { signal: controller.signal });
    await until(() => engine.calls.length >= 32, "they are asked");
    await turn();
    controller.abort(new Error("gone"));
    await expect(listed).rejects.toThrow("gone");
    expect(engine.calls.every(({ init }) => init.signal.aborted)).toBe(true);
  });
  expect(warnings).toEqual([]);
});

test("fifty requests may share the signal of their caller", async () => {
  const warnings = await warningsOf(async () => {
    const { engine, router } = handStage({ maxInFlight: MANY / 2 });
    const { signal } = new AbortController();
    const texts = Array.from({ length: MANY }, async (_, at) => {
      const response = await router.fetch(CHAT_URL, { ...chat(`${at}`), signal });
      return response.text();
    });
    for (let at = 0; at < MANY; at++) (await engine.call(at)).respond(Response.json({ choices: [] }));
    expect(await Promise.all(texts)).toHaveLength(MANY);
    expect(isIdle(router)).toBe(true);
  });
  expect(warnings).toEqual([]);
});

test("fifty workers may be drained under one signal", async () => {
  const warnings = await warningsOf(async () => {
    const workers = Array.from({ length: MANY }, (_, at) => ({ id: `${at}`, url: `http://w${at}`, maxInFlight: 1 }));
    const { engine, router } = handStage({ workers });
    for (let at = 0; at < MANY; at++) void router.fetch(CHAT_URL, chat(`${at}`)).then((response) => response.text());
    await engine.call(MANY - 1);
    const controller = new AbortController();
    const drained = workers.map(({ id }) => router.drain(id, { signal: controller.signal }));
    await turn();
    controller.abort(new Error("enough"));
    for (const { status } of await Promise.allSettled(drained)) expect(status).toBe("rejected");
    for (const call of engine.calls) call.respond(Response.json({ choices: [] }));
    await until(() => isIdle(router), "all have ended");
  });
  expect(warnings).toEqual([]);
});
