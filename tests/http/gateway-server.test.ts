import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GatewayServer, serveGateway } from "../../src/node/serve-gateway.js";
import { TOKEN } from "./api-stage.js";
import { GatewayStage } from "./gateway-stage.js";

// The handler behind a real server, to which requests are sent as no client would write them.

let stage: GatewayStage;
let server: GatewayServer;
let before: string;
beforeAll(async () => {
  stage = new GatewayStage();
  before = stage.state();
  server = await serveGateway({ gateway: stage.router, fallback: (request) => stage.api.fetch(request) });
});
afterAll(() => server?.close());

/** Sends lines, and gives the status of each answer. */
async function statusesOf(...lines: readonly string[]): Promise<number[]> {
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += chunk;
  return Array.from(text.matchAll(/^HTTP\/1\.1 (\d+)/gm), ([, status]) => Number(status));
}

const CLOSE = "Connection: close";

test.each([
  ["another host", ["GET /workers HTTP/1.1", "Host: evil.test", CLOSE]],
  ["the name of this machine", ["GET /workers HTTP/1.1", "Host: localhost", "Origin: http://localhost", CLOSE]],
  ["a target with a host", ["GET http://localhost/workers HTTP/1.1", "Host: evil.test", CLOSE]],
  [
    "forwarded headers",
    ["GET /workers HTTP/1.1", "Host: a", "X-Forwarded-For: 127.0.0.1", "Forwarded: for=_self", CLOSE],
  ],
  ["a way round", ["GET /v1/../workers HTTP/1.1", "Host: a", CLOSE]],
  ["an escaped way round", ["GET /v1/%2e%2e/workers HTTP/1.1", "Host: a", CLOSE]],
  [
    "two tokens, one of them right",
    ["GET /workers HTTP/1.1", "Host: a", "Authorization: Bearer wrong", `Authorization: Bearer ${TOKEN}`, CLOSE],
  ],
])("nobody without the token comes in by %s", async (_, lines) => {
  expect(await statusesOf(...lines)).toEqual([401]);
  expect(stage.state()).toBe(before);
});

test.each([
  ["no host", ["GET /workers HTTP/1.1", CLOSE]],
  ["a host that is none", ["GET /workers HTTP/1.1", "Host: a b/@c", CLOSE]],
  ["two hosts", ["GET /workers HTTP/1.1", "Host: a", "Host: localhost", CLOSE]],
  ["a slash more", ["GET //workers HTTP/1.1", "Host: a", CLOSE]],
  ["letters in the case of others", ["GET /Workers HTTP/1.1", "Host: a", CLOSE]],
  ["a backslash", ["GET /v1\\..\\workers HTTP/1.1", "Host: a", CLOSE]],
  ["an escape of a letter", ["GET /%77orkers HTTP/1.1", "Host: a", CLOSE]],
  ["a way round to an engine", ["POST /v1/../flush_cache HTTP/1.1", "Host: a", "Content-Length: 0", CLOSE]],
])("what is odd is refused: %s", async (_, lines) => {
  const statuses = await statusesOf(...lines);
  expect(statuses).toHaveLength(1);
  expect([400, 401, 404]).toContain(statuses[0]);
  expect(stage.asked).toEqual([]);
  expect(stage.state()).toBe(before);
});

test("who has the token comes in, whatever the host", async () => {
  const lines = ["GET /workers HTTP/1.1", "Host: evil.test", `Authorization: Bearer ${TOKEN}`, CLOSE];
  expect(await statusesOf(...lines)).toEqual([200]);
});
