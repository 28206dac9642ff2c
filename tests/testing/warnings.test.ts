import { expect, test } from "vitest";
import { createFakeEngine } from "../../src/testing/index.js";
import { until } from "../support/until.js";

const turn = () => new Promise((resolve) => setImmediate(resolve)); // Node tells of warnings a turn later
const REQUESTS = 50;

test("fifty requests at once are no reason for the process to warn, however they end", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  const engine = createFakeEngine({ faults: () => ({ kind: "hang" }) });
  const streaming = createFakeEngine();
  const ask = (fetch: typeof engine.fetch, more: object) => {
    const body = JSON.stringify({ messages: [{ role: "user", content: "x" }], max_tokens: 4, ...more });
    return fetch("http://engine/v1/chat/completions", { method: "POST", body });
  };
  const hanging = Array.from({ length: REQUESTS }, () => ask(engine.fetch, {}));
  await until(() => engine.calls.length === REQUESTS, "all are there");
  await turn();
  engine.dispose();
  for (const { status } of await Promise.allSettled(hanging)) expect(status).toBe("rejected");
  const answers = await Promise.all(Array.from({ length: REQUESTS }, () => ask(streaming.fetch, { stream: true })));
  await turn();
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  for (const text of texts) expect(text).toMatch(/\[DONE\]\s+$/);
  streaming.dispose();
  await turn();
  process.off("warning", listen);
  expect(warnings).toEqual([]);
});
