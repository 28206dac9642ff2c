import { describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { expectError, hashes, TOKEN } from "./api-stage.js";
import { GatewayStage, MODEL } from "./gateway-stage.js";

const PROMPT = { sequence_hashes: hashes(2), isl_tokens: 128 };

/** What takes the token, with a body that would be served. */
const GUARDED: readonly (readonly [method: string, path: string, body: unknown])[] = [
  ["POST", "/workers", { worker_id: "b", endpoint: "http://b.test" }],
  ["GET", "/workers", undefined],
  ["PATCH", "/workers/a", { lifecycle: "draining" }],
  ["DELETE", "/workers/a", undefined],
  ["POST", "/select", { ...PROMPT, selection_id: "t" }],
  ["POST", "/select_and_reserve", PROMPT],
  ["POST", "/reservations", { ...PROMPT, selection_id: "t", worker_id: "a" }],
  ["POST", "/reservations/s/prefill_complete", undefined],
  ["POST", "/reservations/s/output_block", undefined],
  ["POST", "/reservations/s/touch", undefined],
  ["POST", "/reservations/s/cached_tokens", { cached_tokens: 1 }],
  ["DELETE", "/reservations/s", undefined],
  ["GET", "/loads", undefined],
  ["POST", "/potential_loads", PROMPT],
  ["POST", "/overlap_scores", PROMPT],
  ["POST", "/explain", { path: "/v1/chat/completions", body: { model: MODEL, messages: [] } }],
];
const OPEN = ["/health", "/ready", "/metrics", "/openapi.json", "/v1/models"];

const stageWithBooking = () => {
  const stage = new GatewayStage();
  stage.router.selection.reserve({ selectionId: "s", workerId: "a", sequenceHashes: [1n], islTokens: 64 });
  return stage;
};

const OTHER_LENGTH = TOKEN.slice(1);
const SAME_LENGTH = `${TOKEN.slice(0, -1)}x`;

/** Ways in which somebody without the token may try. */
const ATTEMPTS: Readonly<Record<string, Record<string, string>>> = {
  "no token": { authorization: "" },
  "another token of the same length": { authorization: `Bearer ${SAME_LENGTH}` },
  "a token of another length": { authorization: `Bearer ${OTHER_LENGTH}` },
  "the token and more": { authorization: `Bearer ${TOKEN}${TOKEN}` },
  "the token twice": { authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` },
  "the token without a scheme": { authorization: TOKEN },
  "the token in another scheme": { authorization: `Token ${TOKEN}` },
  "the token as basic credentials": { authorization: `Basic ${btoa(`${TOKEN}:${TOKEN}`)}` },
  "the token's beginning and a lower-case scheme": { authorization: `bearer ${OTHER_LENGTH}` },
  "the token in other headers": {
    authorization: "",
    "x-api-key": TOKEN,
    "api-key": TOKEN,
    "x-control-token": TOKEN,
    "proxy-authorization": `Bearer ${TOKEN}`,
    cookie: `token=${TOKEN}; authorization=Bearer ${TOKEN}`,
  },
  "another host": { authorization: "", host: "localhost", origin: "http://localhost", referer: "http://127.0.0.1/" },
  "forwarded headers": {
    authorization: "",
    forwarded: "for=127.0.0.1;host=localhost;proto=https",
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-host": "localhost",
    "x-forwarded-proto": "https",
    "x-real-ip": "127.0.0.1",
    "x-original-url": "/health",
    "x-rewrite-url": "/health",
    "x-http-method-override": "GET",
  },
};

describe("what is guarded", () => {
  test.each(GUARDED)("%s %s is open to who has the token", async (method, path, body) => {
    const stage = stageWithBooking();
    expect((await stage.send(method, path, body)).status).toBeLessThan(300);
  });

  test.each(Object.entries(ATTEMPTS))("answers nobody with %s, and changes nothing", async (_, headers) => {
    const stage = stageWithBooking();
    const before = stage.state();
    for (const [method, path, body] of GUARDED) {
      const reply = await stage.send(method, path, body, headers);
      expectError(reply, 401, "KVROUTE_HTTP_UNAUTHORIZED");
      expect(reply.headers.get("www-authenticate")).toBe("Bearer");
      expect(reply.text).not.toContain(TOKEN);
    }
    expect(stage.state()).toBe(before);
  });

  test("tells no other methods to who has no token, and all to who has it", async () => {
    const stage = stageWithBooking();
    for (const path of new Set(GUARDED.map(([, path]) => path))) {
      expectError(await stage.send("PUT", path, undefined, { authorization: "" }), 401, "KVROUTE_HTTP_UNAUTHORIZED");
      const reply = await stage.send("PUT", path, undefined);
      expectError(reply, 405, "KVROUTE_HTTP_METHOD");
      const methods = GUARDED.filter((guarded) => guarded[1] === path).map(([method]) => method);
      expect(reply.headers.get("allow")?.split(", ")).toEqual(expect.arrayContaining(methods));
    }
    for (const path of ["/health", "/ready", "/metrics", "/openapi.json"]) {
      expectError(await stage.send("PUT", path, undefined, { authorization: "" }), 405, "KVROUTE_HTTP_METHOD");
    }
  });

  test("takes no token from the query", async () => {
    const stage = stageWithBooking();
    for (const [method, path, body] of GUARDED) {
      const query = `?token=${TOKEN}&access_token=${TOKEN}&authorization=Bearer%20${TOKEN}`;
      const reply = await stage.send(method, path + query, body, { authorization: "" });
      expectError(reply, 401, "KVROUTE_HTTP_UNAUTHORIZED");
    }
  });

  test("says so before it reads a body", async () => {
    const stage = new GatewayStage({ maxBodyBytes: 1 });
    for (const [method, path, body] of GUARDED) {
      const reply = await stage.send(method, path, body, { authorization: "", "content-type": "text/plain" });
      expect(reply.status).toBe(401);
    }
  });

  test("takes no body of a page of another site, even with the token", async () => {
    const stage = stageWithBooking();
    for (const [method, path, body] of GUARDED.filter(([, , body]) => body !== undefined)) {
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        const reply = await stage.send(method, path, body, { "content-type": type });
        expectError(reply, 415, "KVROUTE_HTTP_MEDIA_TYPE");
      }
    }
  });

  test("is not there without a control token, whatever is sent", async () => {
    const stage = new GatewayStage({ controlToken: undefined });
    const before = stage.state();
    for (const [method, path, body] of GUARDED) {
      for (const headers of [{}, { authorization: "" }, { authorization: "Bearer undefined" }]) {
        expectError(await stage.send(method, path, body, headers), 404, "KVROUTE_HTTP_NOT_FOUND");
      }
    }
    expect(stage.state()).toBe(before);
  });
});

describe("what is open", () => {
  test.each(OPEN)("%s asks for nothing, and tells neither where workers listen nor what is cached", async (path) => {
    const stage = stageWithBooking();
    await stage.chat("a secret");
    const response = await stage.api.fetch(new Request(`http://gateway.test${path}`));
    expect(response.status).toBe(200);
    expect(await response.text()).not.toMatch(/a\.test|a secret/);
  });

  test("no answer lets pages of other sites read it", async () => {
    const stage = stageWithBooking();
    const headers = { origin: "http://evil.test", "access-control-request-method": "POST" };
    const paths = [...OPEN, ...GUARDED.map(([, path]) => path), "/v1/chat/completions", "/nothing"];
    for (const path of paths) {
      for (const method of ["GET", "OPTIONS", "POST", "HEAD"]) {
        const response = await stage.api.fetch(new Request(`http://gateway.test${path}`, { method, headers }));
        const names = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
        expect(names).toEqual([]);
        await response.body?.cancel();
      }
    }
  });
});

describe("the OpenAPI document", () => {
  const listed = async (controlToken: string | undefined, metrics?: false) => {
    const { paths } = (await new GatewayStage({ controlToken, metrics }).send("GET", "/openapi.json")).body;
    return Object.entries<Record<string, { operationId: string; security?: unknown }>>(paths).flatMap(
      ([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => ({ at: `${method.toUpperCase()} ${path}`, ...operation })),
    );
  };
  const V1 = [
    ...["chat/completions", "completions", "responses", "messages", "embeddings"].map((path) => `POST /v1/${path}`),
    "GET /v1/models",
  ];
  const guarded = GUARDED.map(([method, path]) =>
    `${method} ${path}`
      .replace("/a", "/{worker_id}")
      .replace("/s/", "/{selection_id}/")
      .replace(/\/s$/, "/{selection_id}"),
  );

  test("lists what is there, and what of it takes the token", async () => {
    const all = await listed(TOKEN);
    expect(all.map(({ at }) => at).sort()).toEqual(
      [...V1, ...guarded, "GET /health", "GET /ready", "GET /metrics"].sort(),
    );
    const secured = all.filter(({ security }) => security !== undefined).map(({ at }) => at);
    expect(secured.sort()).toEqual([...guarded].sort());
    expect(new Set(all.map(({ operationId }) => operationId)).size).toBe(all.length);
  });

  test("lists nothing else without a token and metrics", async () => {
    const all = await listed(undefined, false);
    expect(all.map(({ at }) => at).sort()).toEqual([...V1, "GET /health", "GET /ready"].sort());
  });
});

describe("the control token below /v1", () => {
  const sent = async (headers: Record<string, string>, options = {}) => {
    const stage = new GatewayStage(options);
    await stage.send("POST", "/v1/chat/completions", { model: MODEL, messages: [] }, headers);
    return stage.engine.calls.map((call) => [
      call.headers.get("authorization"),
      call.headers.get("x-api-key"),
      call.body,
    ]);
  };

  test("goes to no engine, in whichever header it comes; everything else does", async () => {
    const body = { model: MODEL, messages: [] };
    expect(await sent({ authorization: `Bearer ${TOKEN}`, "x-api-key": "k" })).toEqual([[null, "k", body]]);
    expect(await sent({ authorization: "Bearer engine", "x-api-key": TOKEN })).toEqual([["Bearer engine", null, body]]);
    expect(await sent({ authorization: `Bearer engine, bearer ${TOKEN}` })).toEqual([[null, null, body]]);
    expect(await sent({ authorization: `Bearer ${SAME_LENGTH}` })).toEqual([[`Bearer ${SAME_LENGTH}`, null, body]]);
  });

  test("is nothing where there is no control token", async () => {
    const [call] = await sent({ authorization: `Bearer ${TOKEN}` }, { controlToken: undefined });
    expect(call?.[0]).toBe(`Bearer ${TOKEN}`);
  });

  test("that is taken out leaves the request its signal", async () => {
    const stage = new GatewayStage({}, { fetch: () => new Promise(() => {}) });
    const controller = new AbortController();
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: "{}", signal: controller.signal };
    const answer = stage.api.fetch(new Request("http://gateway.test/v1/chat/completions", init));
    await until(() => stage.router.stats().inFlight === 1, "the request is at a worker");
    controller.abort();
    expect((await answer).status).toBe(499);
    expect(stage.isIdle).toBe(true);
  });
});
