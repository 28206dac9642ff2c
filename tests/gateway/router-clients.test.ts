import type OpenAI from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createRouter, type Router } from "../../src/gateway/router.js";
import { clientsContract, LONG, model, openAiOf, type Served, user } from "../contract/clients.js";
import { until } from "../support/until.js";
import { type EngineProcess, startEngine } from "./engine-process.js";
import { isIdle } from "./stage.js";

let engines: EngineProcess[];
let router: Router;
let served: Served;
let client: OpenAI;

beforeAll(async () => {
  const options = { blockSize: 16, decodeSpeedupRatio: 100 };
  engines = await Promise.all([1, 2].map((number) => startEngine({ ...options, name: `e${number}` })));
  router = createRouter({ workers: engines.map(({ url }, index) => ({ id: `e${index + 1}`, url })) });
  served = {
    baseURL: "http://kvroute/v1",
    fetch: router.fetch,
    inFlight: async () => router.stats().inFlight,
    aborted: () => router.stats().outcomes.aborted,
    enginesIdle,
  };
  client = openAiOf(served);
});
afterAll(() => {
  for (const engine of engines ?? []) engine.kill();
});
afterEach(async () => {
  await until(() => isIdle(router), "the router is idle");
});

const engineOf = (id: string) => /-(e\d)-/.exec(id)?.[1];

/** Waits until no engine has a request. */
async function enginesIdle(): Promise<void> {
  for (const engine of engines) {
    let running = 1;
    while (running > 0) {
      const stats = await engine.stats();
      running = stats.numRunning + stats.numWaiting;
    }
  }
}

describe("the openai client, in process", () => {
  test("chats, and the next turn finds the last one in the cache of its engine", async () => {
    for (let round = 0; round < 4; round++) {
      const messages = [user(`${round}. ${LONG}`)];
      const first = await client.chat.completions.create({ model, messages });
      const answer = { role: "assistant" as const, content: first.choices[0]?.message.content ?? "" };
      const next = await client.chat.completions.create({ model, messages: [...messages, answer, user("And then?")] });
      expect(engineOf(next.id)).toBe(engineOf(first.id));
      expect(next.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan(
        (first.usage?.prompt_tokens as number) - 16,
      );
    }
    const { workers, outcomes } = router.stats();
    expect(workers.filter((worker) => worker.outcomes.completed > 0)).toHaveLength(2);
    expect(outcomes).toEqual({ completed: 8, rejected: 0, failed: 0, aborted: 0, stalled: 0 });
  });

  test("is told that a stream broke off, in the middle of an event or not", async () => {
    for (const kind of ["die", "truncate"]) {
      const before = router.stats().outcomes.failed;
      const headers = { "x-kvroute-fault": JSON.stringify({ kind, afterEvents: 3 }) };
      const stream = await client.chat.completions.create({ model, messages: [user("x")], stream: true }, { headers });
      let events = 0;
      const reading = async () => {
        for await (const _ of stream) events++;
      };
      await expect(reading()).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_BROKEN" });
      expect(events).toBe(3);
      expect(router.stats().outcomes.failed).toBe(before + 1);
    }
  });
});

clientsContract(() => served);
