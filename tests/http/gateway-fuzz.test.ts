import fc from "fast-check";
import { expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import { until } from "../support/until.js";
import { TOKEN } from "./api-stage.js";
import { GatewayStage } from "./gateway-stage.js";

const BASE = "http://gateway.test";

const segment = fc.oneof(
  fc.constantFrom("v1", "chat", "completions", "models", "responses", "messages", "workers", "a", "reservations", "s"),
  fc.constantFrom("explain", "select", "metrics", "ready", "health", "openapi.json", "%", "%ff", "..", "%2e%2e", ""),
  fc.webSegment(),
);
const path = fc.oneof(
  fc.constantFrom("/v1/chat/completions", "/v1/responses", "/v1/messages", "/workers", "/workers/a", "/explain"),
  fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join("/")}`),
);
const method = fc.constantFrom("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "QUERY", "x");
const headerName = fc.constantFrom(
  ...["content-type", "content-encoding", "x-session-id", "baggage", "accept", "expect-nothing", "forwarded"],
  ...["x-forwarded-host", "x-kvroute-fault", "x-request-id", "x-api-key", "authorization"],
);
const headerValue = fc.oneof(
  fc.constantFrom(
    "application/json",
    "text/plain",
    "gzip",
    `Bearer ${TOKEN}x`,
    "session.id=%",
    "",
    ",",
    "a".repeat(2_000),
  ),
  fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) }),
);
const headers = fc.array(fc.tuple(headerName, headerValue), { maxLength: 5 });
const json = fc
  .record(
    {
      model: fc.constantFrom<unknown>("fake-model", "other", 1, null),
      messages: fc.oneof(fc.jsonValue(), fc.array(fc.record({ role: fc.string(), content: fc.jsonValue() }))),
      prompt: fc.jsonValue(),
      input: fc.jsonValue(),
      stream: fc.constantFrom<unknown>(true, false, "yes"),
      max_tokens: fc.constantFrom<unknown>(1, 0, -1, 1e9, "1"),
      path: fc.constantFrom<unknown>("/v1/chat/completions", "/workers", 1),
      headers: fc.jsonValue(),
      body: fc.jsonValue(),
      worker_id: fc.constantFrom<unknown>("a", "b", 1, ""),
      endpoint: fc.constantFrom<unknown>("http://b.test", "b", 1),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value));
const body = fc.oneof(
  json.map((text) => new TextEncoder().encode(text)),
  fc.tuple(json, fc.nat()).map(([text, at]) => new TextEncoder().encode(text.slice(0, at % (text.length + 1)))),
  fc.uint8Array({ maxLength: 200 }),
  fc.constant(undefined),
);

const VALID = new Set([...Array(1_000).keys()].slice(200, 600));

test("whatever comes without the token is answered, and changes nothing that is kept of workers and bookings", async () => {
  const stage = new GatewayStage();
  const kept = () => JSON.stringify([stage.router.selection.workers.list(), stage.router.selection.loads()]);
  const before = kept();
  await fc.assert(
    fc.asyncProperty(method, path, headers, body, async (method, path, headers, bytes) => {
      const hasBody = bytes !== undefined && !["GET", "HEAD"].includes(method);
      // A fault that the engine is asked for may never end: what is sent here is for the gateway.
      const sent = headers.filter(([name]) => name !== "x-kvroute-fault");
      const request = new Request(BASE + path, {
        method,
        headers: sent,
        body: hasBody ? Uint8Array.from(bytes) : null,
      });
      const response = await stage.api.fetch(request);
      expect(response).toBeInstanceOf(Response);
      expect(VALID).toContain(response.status);
      expect(response.status).not.toBe(500);
      await response.text();
      await until(() => stage.isIdle, "the router is idle");
      expect(kept()).toBe(before);
    }),
    { numRuns: scaled(1_500) },
  );
  expect(stage.errors).toEqual([]);
});

test("whatever comes with the token is answered, and what is refused changes nothing", async () => {
  let stage = new GatewayStage();
  const posts = fc.constantFrom("/workers", "/explain", "/select", "/select_and_reserve", "/reservations");
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(posts, path),
      fc.constantFrom("POST", "PATCH", "DELETE"),
      body,
      async (path, method, bytes) => {
        if (new URL(BASE + path).pathname.startsWith("/v1/")) return; // for an engine, as the URL has it
        const before = stage.state();
        const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
        const sent = bytes === undefined ? null : Uint8Array.from(bytes);
        const response = await stage.api.fetch(new Request(BASE + path, { method, headers, body: sent }));
        expect([200, 201, 400, 404, 405, 409, 429, 503]).toContain(response.status);
        if (response.status >= 400) expect(stage.state()).toBe(before);
        else stage = new GatewayStage();
      },
    ),
    { numRuns: scaled(1_500) },
  );
});
