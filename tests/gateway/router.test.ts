import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Clock } from "../../src/clock.js";
import { OptionError } from "../../src/errors.js";
import { createRouter, type Router, type RouterOptions, type WorkerOptions } from "../../src/gateway/router.js";
import { tenantOf } from "../../src/gateway/session.js";
import { TENANTS_MAX, Tenants } from "../../src/gateway/tenants.js";
import { MODELS_MAX, TokenRates } from "../../src/gateway/token-rates.js";
import { POLICY_NAMES } from "../../src/selection/policy.js";
import { CHAT_URL, chat, DONE, isIdle, token } from "./stage.js";

const worker = { id: "a", url: "http://a" };
const never = (): never => {
  throw new Error("not at construction");
};

describe("createRouter", () => {
  test.each(POLICY_NAMES)("reads no clock, no randomness and sets no timer, with %s", (policy) => {
    const clock: Clock = { now: never, setTimeout: never, clearTimeout: never };
    const router = createRouter({ workers: [worker, { ...worker, id: "b" }], policy, clock, random: never });
    router.addWorker({ ...worker, id: "c" });
    expect(() => router.stats()).toThrow("not at construction"); // so the clock is the one that was given
  });

  test.each<[string, Record<string, unknown>]>([
    ["workers", { workers: undefined }],
    ["workers[0]", { workers: [null] }],
    ["workers[0].id", { workers: [{ url: "http://a" }] }],
    ["workers[0].id", { workers: [{ ...worker, id: "x".repeat(1_025) }] }],
    ["workers[0].id", { workers: [{ ...worker, id: "half a character: \ud83d" }] }],
    ["workers[0].url", { workers: [{ id: "a", url: "a:8000/x" }] }],
    ["workers[0].url", { workers: [{ id: "a", url: "http://a?x=1" }] }],
    ["workers[0].url", { workers: [{ id: "a", url: "http://user:secret@a" }] }],
    ["workers[0].models", { workers: [{ ...worker, models: [] }] }],
    ["workers[0].models[1]", { workers: [{ ...worker, models: ["m", 1] }] }],
    ["workers[0].headers", { workers: [{ ...worker, headers: { "no name": "secret" } }] }],
    ["workers[0].headers", { workers: [{ ...worker, headers: "x" }] }],
    ["workers[0].headers", { workers: [{ ...worker, headers: { "x-key": "\u0001secret" } }] }],
    ["index", { index: new Map() }],
    ["workers[1].maxInFlight", { workers: [worker, { ...worker, id: "b", maxInFlight: 0 }] }],
    ["workers[0].weight", { workers: [{ ...worker, weight: 1e6 + 1 }] }],
    ["the ids of workers", { workers: [worker, worker] }],
    ["a policy", { policy: "best" }],
    ["policy", { policy: {} }],
    ["maxBodyBytes", { maxBodyBytes: 0 }],
    ["maxBodyBytes", { maxBodyBytes: "32 MiB" }],
    ["blockBytes", { blockBytes: 16_388 }],
    ["blockBytes", { blockBytes: 3 }],
    ["blockBytes", { blockBytes: 255 }],
    ["stallTimeoutMs", { stallTimeoutMs: 2 ** 31 }],
    ["forwardAffinityHeaders", { forwardAffinityHeaders: "no" }],
    ["fetch", { fetch: {} }],
    ["random", { random: 4 }],
    ["clock.setTimeout", { clock: { now: () => 0 } }],
  ])("refuses a wrong option with a sentence that names it: %s", (name, wrong) => {
    const make = () => createRouter({ workers: [worker], ...wrong } as RouterOptions);
    expect(make).toThrow(OptionError);
    expect(make).toThrow(`Expected ${name} `);
    expect(make).not.toThrow(/secret/);
  });

  test("takes options at their limits, and URLs with /v1 as well", () => {
    const workers: WorkerOptions[] = [
      { id: "x".repeat(1_024), url: "https://a/base/v1/", maxInFlight: 1, weight: 1e-6 },
    ];
    for (const blockBytes of [4, 16_384]) createRouter({ workers, blockBytes, maxBodyBytes: 1, stallTimeoutMs: 1 });
    expect(createRouter({ workers: [] }).stats().workers).toEqual([]);
  });

  test("refuses a second worker of an id, and changes nothing", () => {
    const router = createRouter({ workers: [worker] });
    expect(() => router.addWorker({ ...worker, url: "http://b" })).toThrow('got "a" twice');
    expect(router.stats().selection.workers).toBe(1);
    router.removeWorker("a");
    router.addWorker({ ...worker, url: "http://b" });
  });
});

describe("what passes through equals the direct call, byte for byte", () => {
  const utf8 = Buffer.from(`: hi\r\n\r\ndata:${JSON.stringify({ choices: [], text: "\u00e9\u{1f600}" })}\r\n\r\n`);
  const last = Buffer.from(`${token("x", "stop")}${DONE}`);
  const answers: Record<string, { status: number; type: string; parts: Uint8Array[] }> = {
    // cut in the middle of characters, of line ends, and of events
    stream: { status: 200, type: "text/event-stream", parts: [...utf8].map((byte) => Buffer.of(byte)).concat(last) },
    together: { status: 200, type: "text/event-stream; charset=utf-8", parts: [Buffer.concat([utf8, last])] },
    json: { status: 200, type: "application/json", parts: [Buffer.from(' {"usage":'), Buffer.from("null}\n")] },
    binary: {
      status: 200,
      type: "application/octet-stream",
      parts: [Uint8Array.from({ length: 300_000 }, (_, at) => at)],
    },
    error: { status: 422, type: "application/json", parts: [Buffer.from('{"detail":[]}')] },
    empty: { status: 204, type: "text/plain", parts: [] },
  };
  let url: string;
  let router: Router;
  const server = createServer(async (request, response) => {
    const { status, type, parts } = answers[request.headers["x-answer"] as string] as (typeof answers)[string];
    response.writeHead(status, {
      "content-type": type,
      "x-request-id": "r1",
      "set-cookie": ["a=1", "b=2"],
      date: "then",
    });
    for (const part of parts) await new Promise<void>((sent) => response.write(part, () => sent()));
    response.end();
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    router = createRouter({ workers: [{ id: "a", url }], receipts: false });
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test.each(Object.keys(answers))("%s", async (answer) => {
    for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/other"]) {
      const init = { ...chat("x"), headers: { "x-answer": answer } };
      const seen = async (response: Response) => {
        const { status, statusText } = response;
        const headers = [...response.headers].filter(
          ([name]) => !/^(connection|keep-alive|transfer-encoding)$/.test(name),
        );
        return { status, statusText, headers, body: Buffer.from(await response.arrayBuffer()).toString("latin1") };
      };
      const direct = await seen(await fetch(`${url}${path}`, init));
      if (answer === "stream" && path !== "/v1/chat/completions") continue; // it is whole by that protocol alone
      if (answer === "together" && path !== "/v1/chat/completions") continue;
      expect(await seen(await router.fetch(`http://kvroute${path}`, init))).toEqual(direct);
      expect(await seen(await router.handler(new Request(`http://kvroute${path}`, init)))).toEqual(direct);
    }
    expect(isIdle(router)).toBe(true);
  });
});

test("fetch and handler need no this, and fetch takes what fetch takes", async () => {
  const { fetch, handler } = createRouter({ workers: [] });
  for (const input of [CHAT_URL, new URL(CHAT_URL), new Request(CHAT_URL, chat("x")), "/v1/chat/completions"]) {
    expect((await fetch(input, input instanceof Request ? undefined : chat("x"))).status).toBe(503);
  }
  expect((await handler(new Request(CHAT_URL, chat("x")))).status).toBe(503);
  await expect(fetch("http://")).rejects.toThrow(TypeError);
});

describe("tenants", () => {
  const as = (authorization: string) => new Headers({ authorization });

  test("are those that the credentials name, asked once or again", async () => {
    const tenants = new Tenants();
    for (const headers of [as("A"), as("B"), as("A"), new Headers(), new Headers({ "x-api-key": "A" })]) {
      expect(await tenants.of(headers)).toBe(await tenantOf(headers));
    }
  });

  test("are remembered of TENANTS_MAX credentials, those used last", async () => {
    const tenants = new Tenants();
    const digest = vi.spyOn(crypto.subtle, "digest");
    const computed = async (headers: Headers) => {
      const before = digest.mock.calls.length;
      await tenants.of(headers);
      return digest.mock.calls.length > before;
    };
    for (let credential = 0; credential < TENANTS_MAX; credential++) await computed(as(`${credential}`));
    expect(await computed(as("0"))).toBe(false);
    expect(await computed(as("new"))).toBe(true);
    expect([await computed(as("0")), await computed(as("new")), await computed(as("1"))]).toEqual([false, false, true]);
    digest.mockRestore();
  });
});

describe("the rate of bytes to tokens", () => {
  test("begins at 4, moves towards what engines count, and no single report carries it away", () => {
    const rates = new TokenRates();
    expect(rates.get("m")).toBe(4);
    rates.learn("m", 1_000_000, { promptTokens: 1 });
    expect(rates.get("m")).toBe(34); // the mean of 4 and the most that is believed, 64
    for (let report = 0; report < 500; report++) rates.learn("m", 300, { promptTokens: 100 });
    expect(rates.get("m")).toBeCloseTo(3, 3);
    rates.learn("m", 300, { promptTokens: 0 });
    rates.learn("m", 300, {});
    rates.learn("m", 0, { promptTokens: 7 });
    expect(rates.get("m")).toBeCloseTo(3, 3);
    expect(rates.get("other")).toBe(4);
  });

  test("is remembered of MODELS_MAX models, those used last", () => {
    const rates = new TokenRates();
    const learn = (model: number) => rates.learn(`m${model}`, 200, { promptTokens: 100 });
    for (let model = 0; model < MODELS_MAX; model++) learn(model);
    learn(0);
    learn(MODELS_MAX);
    expect(Object.keys(rates.list())).toHaveLength(MODELS_MAX);
    expect([rates.get("m0"), rates.get("m1"), rates.get(`m${MODELS_MAX}`)].map((rate) => rate < 4)).toEqual([
      true,
      false,
      true,
    ]);
  });
});
