import { createHash } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { GatewayError } from "../../src/errors.js";
import { HeaderList } from "../../src/gateway/header-list.js";
import {
  AHEAD_MAX,
  type GatewayServer,
  type GatewayServerOptions,
  type Refusal,
  serveGateway,
} from "../../src/node/serve-gateway.js";
import { type Asked, answerOf, post, RawClient, serve, whole } from "./serve.js";

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

describe("serveGateway", () => {
  let server: GatewayServer;
  afterEach(async () => {
    await server.close({ signal: AbortSignal.abort() });
    expect([server.connections, server.inFlight]).toEqual([0, 0]);
  });
  const begin = async (...given: Parameters<typeof serve>) => {
    server = await serve(...given);
    return server.url;
  };

  test("gives the gateway method, path, query, headers in lower case and the body as it came", async () => {
    let asked: Asked | undefined;
    const url = await begin((request) => {
      asked = request;
      return whole("done");
    });
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index));
    const response = await fetch(`${url}/v1/chat/completions?a=%20b`, {
      method: "POST",
      headers: { "X-A": "1" },
      body,
    });
    expect([response.status, await response.text(), response.headers.get("content-length")]).toEqual([
      200,
      "done",
      "4",
    ]);
    expect(asked).toMatchObject({ method: "POST", path: "/v1/chat/completions", query: "?a=%20b" });
    expect(asked?.headers.get("x-a")).toBe("1");
    expect(Buffer.compare(asked?.bytes as Uint8Array, body)).toBe(0);
    await fetch(`${url}/v1/models`);
    expect([asked?.method, asked?.bytes]).toEqual(["GET", undefined]);
  });

  test("tells of what it answers itself, and of nothing else", async () => {
    const refusals: Refusal[] = [];
    const onRefused = (refusal: Refusal) => {
      refusals.push(refusal);
      throw new Error("whoever listens may fail");
    };
    const lost = new Error("a secret of the gateway");
    const answer = ({ path }: Asked) => {
      if (path === "/v1/lost") throw lost;
      return whole("done");
    };
    const url = await begin(answer, { apiKeys: ["k"], maxBodyBytes: 3, onRefused });
    const ask = async (path: string, init: RequestInit = {}) =>
      (await fetch(`${url}${path}`, { headers: { "x-api-key": "k" }, ...init })).status;
    expect(await ask("/v1/a")).toBe(200);
    expect(await ask("/v1/a", { headers: {} })).toBe(401);
    expect(await ask("/v1/b", { method: "POST", body: "four" })).toBe(413);
    expect(await ask("/v1/lost")).toBe(500);
    expect(refusals).toMatchObject([
      { method: "GET", path: "/v1/a", status: 401, error: { code: "KVROUTE_GATEWAY_UNAUTHORIZED" } },
      { method: "POST", path: "/v1/b", status: 413, error: { code: "KVROUTE_GATEWAY_BODY_TOO_LARGE" } },
      { method: "GET", path: "/v1/lost", status: 500 },
    ]);
    expect(refusals[2]?.error).toBe(lost);
  });

  test("has a gateway answer what it refuses that wants to, and tells of nothing that the gateway knows", async () => {
    const refusals: Refusal[] = [];
    const heard: unknown[] = [];
    server = await serveGateway({
      gateway: {
        answer: async () => {
          throw new GatewayError("KVROUTE_GATEWAY_CLOSED", "It knows that itself.");
        },
        refuse: ({ method, path }, { code }) => {
          heard.push([method, path, code]);
          return { ...whole("no"), status: 418 };
        },
      },
      apiKeys: ["k"],
      maxBodyBytes: 3,
      onRefused: (refusal) => refusals.push(refusal),
    });
    const ask = async (path: string, init: RequestInit) => (await fetch(`${server.url}${path}`, init)).status;
    const headers = { "x-api-key": "k" };
    expect(await ask("/v1/a", {})).toBe(418);
    expect(await ask("/v1/b", { method: "POST", headers, body: "four" })).toBe(418);
    expect(await ask("/v1/c", { headers })).toBe(503);
    expect(heard).toEqual([
      ["GET", "/v1/a", "KVROUTE_GATEWAY_UNAUTHORIZED"],
      ["POST", "/v1/b", "KVROUTE_GATEWAY_BODY_TOO_LARGE"],
    ]);
    expect(refusals).toMatchObject([{ method: "GET", path: "/v1/c", status: 503 }]);
  });

  test("takes bodies in chunks", async () => {
    let body = "";
    await begin(({ bytes }) => {
      body = text(bytes);
      return whole("done");
    });
    const client = new RawClient(server.port).say(
      "POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    client.say("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    await expect.poll(() => client.received).toMatch(/done$/);
    expect(body).toBe("abcde");
  });

  test.each([
    ["/v1/a/../../metrics", "/metrics"],
    ["/v1/%2e%2e/metrics", "/metrics"],
    ["/v1/%2E./metrics", "/metrics"],
    ["//v1/models", "//v1/models"],
    ["/x/../v1/models", "/v1/models"],
    ["http://elsewhere/v1/models", "/v1/models"],
    ["/v1/models/a.b?c=..", "/v1/models/a.b"],
  ])("reads the target %s as workers would", async (target, path) => {
    const seen: string[] = [];
    await begin(
      ({ path }) => {
        seen.push(`gateway ${path}`);
        return whole("done");
      },
      {
        fallback: async (request) => {
          seen.push(`fallback ${new URL(request.url).pathname}`);
          return new Response("done");
        },
      },
    );
    const client = new RawClient(server.port).say(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect.poll(() => client.received).toMatch(/done$/);
    expect(seen).toEqual([`${path.startsWith("/v1/") ? "gateway" : "fallback"} ${path}`]);
  });

  test("what is no target is no path", async () => {
    await begin(() => whole("done"));
    const client = new RawClient(server.port).say("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(() => client.received).toContain("KVROUTE_GATEWAY_PATH");
  });

  test("sends status, reason and headers as they are, each as often as it is there", async () => {
    const headers = HeaderList.of([
      ["x-a", "1"],
      ["x-a", "2"],
      ["date", "then"],
    ]);
    await begin(() => ({ status: 299, statusText: "As Told", headers }));
    const client = new RawClient(server.port).say("GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect(await client.closed()).toBe(
      "HTTP/1.1 299 As Told\r\nx-a: 1\r\nx-a: 2\r\ndate: then\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );
  });

  test("headers and reasons that cannot be sent do no harm", async () => {
    let answer = answerOf(["x"], { "x-a": "a\nb" });
    await begin(() => answer);
    const response = await fetch(`${server.url}/v1/x`);
    expect([response.status, response.statusText]).toEqual([500, "Internal Server Error"]);
    expect(await response.json()).toMatchObject({ error: { code: "KVROUTE_HTTP_INTERNAL" } });
    expect(answer.cancelled()).toBe(true);
    answer = { ...whole("done"), statusText: "\u0001" };
    expect((await fetch(`${server.url}/v1/x`)).statusText).toBe("OK");
  });

  test("sends the headers of a stream before its first chunk, and each chunk as it comes", async () => {
    let next: (text?: string) => void = () => {};
    const read = () =>
      new Promise<Uint8Array | undefined>((resolve) => {
        next = (part) => resolve(part === undefined ? undefined : Buffer.from(part));
      });
    const headers = HeaderList.of([["content-type", "text/event-stream"]]);
    await begin(() => ({ status: 200, statusText: "", headers, body: { read, cancel: async () => {} } }));
    const { body } = await fetch(`${server.url}/v1/x`);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    for (const part of ["data: 1\n\n", "data: 2\n\n"]) {
      next(part);
      expect(text((await reader.read()).value)).toBe(part);
    }
    next();
    expect((await reader.read()).done).toBe(true);
  });

  test("an answer that breaks off breaks the connection off, behind what was sent", async () => {
    await begin(() => answerOf(["data: 1\n\n"], {}, () => Promise.reject(new Error("broken"))));
    const received = await new RawClient(server.port).say(post("/v1/x", "{}")).closed();
    expect(received).toMatch(/\r\n9\r\ndata: 1\n\n\r\n$/);
  });

  test.each(["3", "5"])("an answer of 4 bytes that says %s is broken", async (length) => {
    await begin(() => answerOf(["ab", "cd"], { "content-length": length }));
    const received = await new RawClient(server.port).say(post("/v1/x", "{}")).closed();
    expect(received).toMatch(/\r\n\r\nab(cd)?$/);
    expect(received.endsWith("abcd")).toBe(length === "5");
  });

  test("reads an answer no faster than the client does, and cancels it when the client goes", async () => {
    const CHUNK = new Uint8Array(65_536);
    let reads = 0;
    let isCancelled = false;
    const body = {
      async read() {
        reads++;
        return CHUNK;
      },
      async cancel() {
        isCancelled = true;
      },
    };
    await begin(() => ({ status: 200, statusText: "", headers: HeaderList.of(), body }));
    const client = new RawClient(server.port).say(post("/v1/x", "{}"));
    client.socket.pause();
    let before = -1;
    const rests = () => {
      const isSame = reads > 0 && reads === before;
      before = reads;
      return isSame;
    };
    await expect.poll(rests, { interval: 100 }).toBe(true);
    expect(reads).toBeLessThan(1_000);
    client.socket.destroy();
    await expect.poll(() => isCancelled).toBe(true);
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test("a client that does not read is given up after sendTimeoutMs, within an answer and behind it", async () => {
    const LONG = "x".repeat(50_000_000);
    const answers = [answerOf(["a", LONG, "b"]), whole(LONG)];
    await begin(() => answers.shift() as ReturnType<typeof whole>, { sendTimeoutMs: 50 });
    for (let count = 0; count < 2; count++) {
      const client = new RawClient(server.port).say(post("/v1/x", "{}"));
      client.socket.pause();
      await expect.poll(() => server.connections).toBe(1);
      await expect.poll(() => [server.inFlight, server.connections]).toEqual([0, 0]);
      client.socket.destroy();
    }
  });

  test("a client that goes aborts its request, and nothing is written", async () => {
    const seen: string[] = [];
    await begin(
      ({ signal }) =>
        new Promise((_, reject) => {
          seen.push("asked");
          signal?.addEventListener("abort", () => {
            seen.push("aborted");
            reject(signal.reason);
          });
        }),
    );
    const client = new RawClient(server.port).say(post("/v1/x", "{}"));
    await expect.poll(() => seen).toEqual(["asked"]);
    client.socket.destroy();
    await expect.poll(() => seen).toEqual(["asked", "aborted"]);
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test("a client that goes within its body asks nothing", async () => {
    let asked = 0;
    await begin(() => {
      asked++;
      return whole("done");
    });
    const client = new RawClient(server.port).say(post("/v1/x", "{}").slice(0, -1));
    await expect.poll(() => server.inFlight).toBe(1);
    client.socket.destroy();
    await expect.poll(() => server.inFlight).toBe(0);
    expect(asked).toBe(0);
  });

  test("bodies may be as long as maxBodyBytes and no longer, whether they say so or not", async () => {
    const url = await begin(({ bytes }) => whole(String(bytes?.length)), { maxBodyBytes: 1_000_000 });
    const send = (length: number, isChunked: boolean) => {
      const bytes = new Uint8Array(length);
      const body = isChunked ? new Blob([bytes]).stream() : bytes;
      return fetch(`${url}/v1/messages`, { method: "POST", body, duplex: "half" } as RequestInit);
    };
    for (const isChunked of [false, true]) {
      expect(await (await send(1_000_000, isChunked)).text()).toBe("1000000");
      for (const length of [1_000_001, 20_000_000]) {
        const response = await send(length, isChunked);
        expect([response.status, await response.json()]).toMatchObject([413, { error: { type: "request_too_large" } }]);
      }
    }
  });

  test("clients that ask before they send are told to, unless they are refused", async () => {
    await begin(({ bytes }) => whole(text(bytes)), { maxBodyBytes: 10 });
    const ask = (length: number) =>
      new RawClient(server.port).say(
        `POST /v1/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`,
      );
    const client = ask(4);
    await expect.poll(() => client.statuses).toEqual([100]);
    client.say("done");
    await expect.poll(() => client.received).toMatch(/done$/);
    const refused = ask(11);
    expect(await refused.closed()).toMatch(/^HTTP\/1\.1 413 .*Connection: close.*"KVROUTE_GATEWAY_BODY_TOO_LARGE"/s);
  });

  test("a request that is refused while its body is there leaves the connection in use", async () => {
    await begin(() => whole("done"), { apiKeys: ["k"] });
    const client = new RawClient(server.port).say(post("/v1/x", "{}"));
    await expect.poll(() => client.statuses).toEqual([401]);
    client.say(post("/v1/x", "{}", "Authorization: Bearer k\r\n"));
    await expect.poll(() => client.statuses).toEqual([401, 200]);
  });

  test("without one of its keys nobody asks, and the error is of the protocol", async () => {
    let asked = 0;
    const url = await begin(
      () => {
        asked++;
        return whole("done");
      },
      { apiKeys: ["k1", "k2"] },
    );
    const wrong = [{}, { authorization: "Bearer k" }, { authorization: "k1" }, { authorization: "Basic k1" }];
    for (const headers of [...wrong, { "x-api-key": "k11" }, { "x-api-key": "" }, { authorization: "Bearer k1 k2" }]) {
      const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: "{}", headers });
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code: "KVROUTE_GATEWAY_UNAUTHORIZED" } });
    }
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: "{}" });
    expect([response.status, await response.json()]).toMatchObject([401, { type: "error" }]);
    expect(asked).toBe(0);
  });

  test("the control token stays here, with keys or without, in whichever header", async () => {
    for (const apiKeys of [undefined, ["k"]]) {
      const seen: unknown[] = [];
      const url = await begin(
        ({ headers }) => {
          seen.push([headers.get("authorization"), headers.get("x-api-key"), headers.get("api-key")]);
          return whole("done");
        },
        { apiKeys, controlToken: "t-1" },
      );
      const ask = async (...headers: [string, string][]) => fetch(`${url}/v1/x`, { headers });
      await ask(["authorization", "bearer  t-1 "], ["x-api-key", "k"]);
      await ask(["authorization", "Bearer engine"], ["authorization", "Bearer t-1"], ["x-api-key", "k"]);
      await ask(["authorization", "Bearer t-12"], ["x-api-key", "k"], ["api-key", "t-1"]);
      await ask(["authorization", "Bearer k"], ["x-api-key", "t-1"]);
      const [key, bearer] = apiKeys === undefined ? ["k", "Bearer k"] : [null, null];
      expect(seen).toEqual([
        [null, key, null],
        [null, key, null],
        ["Bearer t-12", key, null],
        [bearer, null, null],
      ]);
      await server.close();
    }
  });

  test("keys stay here, name the tenant, and leave other credentials alone", async () => {
    const seen: unknown[] = [];
    const url = await begin(
      ({ headers, tenant }) => {
        seen.push([tenant, headers.get("authorization"), headers.get("x-api-key"), headers.get("api-key")]);
        return whole("done");
      },
      { apiKeys: ["k1", "k2"] },
    );
    const tenantOf = (key: string) => createHash("sha256").update(key).digest("hex");
    const ask = (headers: Record<string, string>) => fetch(`${url}/v1/x`, { headers });
    await ask({ authorization: "bearer k1" });
    await ask({ "x-api-key": "k1" });
    await ask({ authorization: "Bearer engine", "x-api-key": "k2" });
    await ask({ authorization: "Bearer k2", "x-api-key": "k1", "api-key": "k2" });
    expect(seen).toEqual([
      [tenantOf("k1"), null, null, null],
      [tenantOf("k1"), null, null, null],
      [tenantOf("k2"), "Bearer engine", null, null],
      [tenantOf("k2"), null, null, null],
    ]);
  });

  test("what is not below /v1/ goes to the fallback, with no key", async () => {
    const url = await begin(() => whole("gateway"), {
      apiKeys: ["k"],
      fallback: async (request) => new Response(`${request.method} ${await request.text()}`, { status: 201 }),
    });
    const response = await fetch(`${url}/health`, { method: "POST", body: "body" });
    expect([response.status, await response.text()]).toEqual([201, "POST body"]);
    expect(server.inFlight).toBe(0);
  });

  test("a fallback that fails is an error, and the server goes on", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => {});
    const url = await begin(() => whole("done"), { fallback: () => Promise.reject(new Error("secret")) });
    const response = await fetch(`${url}/health`);
    expect([response.status, await response.text()]).toEqual([500, ""]);
    expect(await (await fetch(`${url}/v1/x`)).text()).toBe("done");
    quiet.mockRestore();
  });

  test("a gateway that fails tells nothing of why", async () => {
    const url = await begin(() => Promise.reject(new TypeError("secret")));
    const response = await fetch(`${url}/v1/x`);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret");
  });

  test("requests that are sent ahead are answered in their order, and not more than AHEAD_MAX at a time", async () => {
    const waiting: (() => void)[] = [];
    await begin(
      ({ query }) =>
        new Promise((resolve) => {
          waiting.push(() => resolve(whole(query)));
        }),
    );
    const ahead = (count: number) => Array.from({ length: count }, (_, at) => post(`/v1/x?${at}`, "{}")).join("");
    const client = new RawClient(server.port).say(ahead(AHEAD_MAX));
    await expect.poll(() => waiting.length).toBe(AHEAD_MAX);
    for (const answer of waiting.splice(0).reverse()) answer();
    await expect.poll(() => client.statuses.length).toBe(AHEAD_MAX);
    const order = [...client.received.matchAll(/\?(\d)/g)].map(([, at]) => Number(at));
    expect(order).toEqual(Array.from({ length: AHEAD_MAX }, (_, at) => at));
    await new RawClient(server.port).say(ahead(AHEAD_MAX + 1)).closed();
    await expect.poll(() => server.connections).toBe(1);
    for (const answer of waiting.splice(0)) answer();
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test("has maxConnections connections, and no more", async () => {
    await begin(() => whole("done"), { maxConnections: 2 });
    const clients = [new RawClient(server.port), new RawClient(server.port)];
    await expect.poll(() => server.connections).toBe(2);
    await new RawClient(server.port).closed();
    for (const client of clients) client.say(post("/v1/x", "{}"));
    await expect.poll(() => clients.map(({ statuses }) => statuses)).toEqual([[200], [200]]);
  });

  test("headers and requests that take too long, and headers that are too long, end with an answer that says so", async () => {
    await begin(() => whole("done"), { headersTimeoutMs: 50, requestTimeoutMs: 100, maxHeaderBytes: 1_000 });
    expect(await new RawClient(server.port).say("POST /v1/x HTTP/1.1\r\n").closed()).toMatch(/^HTTP\/1\.1 408/);
    expect(await new RawClient(server.port).say(post("/v1/x", "{}").slice(0, -1)).closed()).toMatch(/^HTTP\/1\.1 408/);
    const long = post("/v1/x", "{}", `X-A: ${"a".repeat(1_000)}\r\n`);
    expect(await new RawClient(server.port).say(long).closed()).toMatch(/^HTTP\/1\.1 431/);
    await expect.poll(() => server.inFlight).toBe(0);
  });

  test("idle connections end after their time", async () => {
    await begin(() => whole("done"), { keepAliveMs: 20 });
    expect(await new RawClient(server.port).say(post("/v1/x", "{}")).closed()).toMatch(/done$/);
  });

  test("closing answers what is there, says that the connection ends, and takes nothing new", async () => {
    let answer: () => void = () => {};
    await begin(
      () =>
        new Promise((resolve) => {
          answer = () => resolve(whole("done"));
        }),
    );
    const [busy, idle] = [new RawClient(server.port).say(post("/v1/x", "{}")), new RawClient(server.port)];
    await expect.poll(() => [server.inFlight, server.connections]).toEqual([1, 2]);
    let isClosed = false;
    const closing = server.close().then(() => {
      isClosed = true;
    });
    await idle.closed();
    await expect(fetch(`${server.url}/v1/x`)).rejects.toThrow();
    expect(isClosed).toBe(false);
    answer();
    expect(await busy.closed()).toMatch(/Connection: close.*done$/s);
    await closing;
  });

  test("closing with a signal breaks off what is there", async () => {
    await begin(
      ({ signal }) => new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
    );
    const client = new RawClient(server.port).say(post("/v1/x", "{}"));
    await expect.poll(() => server.inFlight).toBe(1);
    const controller = new AbortController();
    const closing = server.close({ signal: controller.signal });
    controller.abort();
    await closing;
    expect(await client.closed()).toBe("");
  });

  test("a port that is taken is an error", async () => {
    await begin(() => whole("done"));
    await expect(serve(() => whole("done"), { port: server.port })).rejects.toThrow("EADDRINUSE");
  });
});

const gateway = { answer: async () => whole("done") };

test.each([
  ["maxBodyBytes", 2 ** 31 - 1],
  ["maxHeaderBytes", 2 ** 31 - 1],
  ["maxConnections", 1_048_576],
  ["headersTimeoutMs", 2 ** 31 - 1],
  ["requestTimeoutMs", 2 ** 31 - 1],
  ["keepAliveMs", 2 ** 31 - 1],
  ["sendTimeoutMs", 2 ** 31 - 1],
] as const)("%s is a whole number from 1 to its limit", async (option, most) => {
  for (const value of [1, most]) await (await serveGateway({ gateway, [option]: value })).close();
  for (const value of [0, most + 1, 1.5, "1" as never]) {
    await expect(serveGateway({ gateway, [option]: value })).rejects.toThrow(`Expected ${option} to be a whole number`);
  }
});

test.each([[[]], [[""]], [["a b"]], [["é"]], [["a".repeat(1_025)]], [[1]], ["k"], [new Array(10_001).fill("k")]])(
  "keys that nobody could have are refused",
  async (apiKeys) => {
    const options = { gateway, apiKeys } as GatewayServerOptions;
    await expect(serveGateway(options)).rejects.toMatchObject({ code: "KVROUTE_OPTION" });
  },
);
