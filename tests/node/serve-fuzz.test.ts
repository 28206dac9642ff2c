import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRouter, type Router } from "../../src/gateway/router.js";
import { type FakeEngineServer, serveFakeEngine } from "../../src/node/fake-engine.js";
import { type GatewayServer, serveGateway } from "../../src/node/serve-gateway.js";
import { type UndiciUpstream, undiciUpstream } from "../../src/node/undici-upstream.js";
import { post, RawClient } from "./serve.js";

// Clients that say anything, stop anywhere and go at any time, before a server with a router and an engine.

let engine: FakeEngineServer;
let upstream: UndiciUpstream;
let router: Router;
let server: GatewayServer;
const failures: unknown[] = [];
const fail = (error: unknown) => void failures.push(error);

beforeAll(async () => {
  process.on("unhandledRejection", fail).on("uncaughtException", fail);
  engine = await serveFakeEngine();
  upstream = undiciUpstream();
  router = createRouter({ workers: [{ id: "a", url: engine.url }], upstream });
  server = await serveGateway({ gateway: router, maxBodyBytes: 100_000, maxHeaderBytes: 4_000 });
});

afterAll(async () => {
  process.off("unhandledRejection", fail).off("uncaughtException", fail);
  await server.close();
  await router.close();
  await upstream.close();
  await engine.close();
});

const chat = (isStream: boolean, more = "") =>
  JSON.stringify({
    model: "fake-model",
    messages: [{ role: "user", content: `hello ${more}` }],
    stream: isStream,
    max_tokens: 5,
  });
const CHAT = "/v1/chat/completions";

const piece = fc.oneof(
  fc.boolean().map((isStream) => post(CHAT, chat(isStream))),
  fc.nat(50_000).map((length) => post(CHAT, chat(true, "x".repeat(length)))),
  fc.constant(post(CHAT, "x".repeat(100_001))),
  fc.constant(post(CHAT, "{}", `X-Long: ${"x".repeat(4_000)}\r\n`)),
  fc.constant("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"),
  fc.constant("GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n"),
  fc.constant("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"),
  fc.constant("CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n"),
  fc.constant("GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
  fc.constant(
    `POST ${CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`,
  ),
  fc.constant(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`),
  fc.constant(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`),
  fc.constant(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n`),
  fc.constant(`POST ${CHAT} HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}`),
  fc.constant(`POST ${CHAT} HTTP/9.9\r\n\r\n`),
  fc.string({ unit: "binary", maxLength: 50 }).map((text) => post(CHAT, text)),
  fc.string({ unit: "binary-ascii", maxLength: 50 }).map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`),
  fc.string({ unit: "binary-ascii", maxLength: 50 }).map((value) => post(CHAT, "{}", `X-A: ${value}\r\n`)),
  fc.string({ unit: "binary", maxLength: 200 }),
);

/** How a client ends: it waits for answers, it hangs up, it resets, or it does not read and then hangs up. */
const ending = fc.constantFrom("wait", "end", "reset", "deaf");
const visit = fc.record({
  pieces: fc.array(piece, { minLength: 1, maxLength: 4 }),
  cut: fc.double({ min: 0, max: 1 }),
  ending,
});

async function play({ pieces, cut, ending }: { pieces: string[]; cut: number; ending: string }): Promise<void> {
  const client = new RawClient(server.port);
  if (ending === "deaf") client.socket.pause();
  const all = pieces.join("");
  client.say(ending === "wait" ? all : all.slice(0, Math.ceil(all.length * cut)));
  if (ending === "wait")
    await Promise.race([client.closed(), expect.poll(() => client.received.length).toBeGreaterThan(0)]).catch(() => {});
  if (ending === "end") client.socket.end();
  else if (ending === "reset") client.socket.resetAndDestroy();
  else client.socket.destroy();
  await client.closed();
}

test("whatever clients do, nothing is left of it, nothing breaks, and the next one is served", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(visit, { minLength: 1, maxLength: 12 }), async (visits) => {
      await Promise.all(visits.map(play));
      await expect.poll(() => [server.connections, server.inFlight]).toEqual([0, 0]);
      await expect.poll(() => router.stats().inFlight).toBe(0);
      const [worker] = router.stats().workers;
      expect(worker).toMatchObject({ inFlight: 0, activePrefillTokens: 0, activeBlocks: 0 });
      expect(failures).toEqual([]);
    }),
    { numRuns: 60 },
  );
  const next = new RawClient(server.port).say(post(CHAT, chat(false)));
  await expect.poll(() => next.statuses).toEqual([200]);
  next.socket.destroy();
  await expect.poll(() => server.connections).toBe(0);
});
