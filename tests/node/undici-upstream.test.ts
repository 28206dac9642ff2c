import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { Answer } from "../../src/gateway/types.js";
import type { UpstreamRequest } from "../../src/gateway/upstream.js";
import { HELD_BYTES_MAX } from "../../src/node/gateway/exchange.js";
import { type UndiciUpstream, type UndiciUpstreamOptions, undiciUpstream } from "../../src/node/undici-upstream.js";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const doNothing = () => {};

async function startServer(handle: Handler) {
  const server = createServer(handle);
  let connections = 0;
  server.on("connection", () => {
    connections++;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    open: () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count))),
    keepAliveTimeout: (ms: number) => {
      server.keepAliveTimeout = ms;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function textOf({ body }: Answer): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read()) {
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

describe("undiciUpstream", () => {
  let handle: Handler;
  let server: Awaited<ReturnType<typeof startServer>>;
  let upstream: UndiciUpstream;
  beforeEach(async () => {
    server = await startServer((request, response) => handle(request, response));
    open();
  });
  afterEach(async () => {
    await upstream.close();
    await server.close();
  });
  const open = (options: UndiciUpstreamOptions = {}) => {
    upstream = undiciUpstream(options);
  };
  const send = (more: Partial<UpstreamRequest> = {}) =>
    upstream.send({
      ...{ method: "POST", url: `${server.url}/v1/x`, headers: HeaderList.of(), bytes: new TextEncoder().encode("{}") },
      signal: new AbortController().signal,
      ...more,
    });

  test("keeps connections for the requests that follow", async () => {
    handle = (_, response) => response.end("done");
    for (let count = 0; count < 5; count++) expect(await textOf(await send())).toBe("done");
    expect(server.connections()).toBeLessThanOrEqual(2); // one is free again a turn behind its answer
  });

  test("does not fail a request because the worker has hung up behind the one before", async () => {
    handle = (request, response) => {
      response.once("finish", () => request.socket.destroySoon()); // though it said that it would keep the connection
      response.setHeader("connection", "keep-alive").end("done");
    };
    for (let count = 0; count < 50; count++) expect(await textOf(await send())).toBe("done");
    expect(server.connections()).toBe(50);
  });

  test("an idle connection goes after its time, and at once where the worker would hardly keep it", async () => {
    open({ keepAliveMs: 20 });
    server.keepAliveTimeout(0);
    for (const hint of [{}, { "keep-alive": "timeout=1" }]) {
      handle = (_, response) => response.writeHead(200, hint).end("done");
      await textOf(await send());
      await expect.poll(() => server.open()).toBe(0);
    }
  });

  test("asks for plain bodies, whatever the caller would take", async () => {
    let seen: unknown;
    handle = (request, response) => {
      seen = request.headers["accept-encoding"];
      response.end();
    };
    await textOf(await send({ headers: HeaderList.of([["accept-encoding", "gzip, br"]]) }));
    expect(seen).toBe("identity");
  });

  test("passes headers on as often as they came, and those of the connection not at all", async () => {
    handle = (_, response) => {
      response.writeHead(200, [
        ...["Set-Cookie", "a=1", "set-cookie", "b=2", "X-Name", "caf\u00e9", "X-Hop", "1"],
        ...["Connection", "keep-alive, x-hop"],
      ]);
      response.end();
    };
    const { headers } = await send();
    expect(headers.toPairs().filter(([name]) => !["date", "content-length"].includes(name))).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["x-name", "caf\u00e9"],
    ]);
  });

  test("announcements before the answer are none", async () => {
    handle = (_, response) => {
      response.writeEarlyHints({ link: "</a>; rel=preload" });
      response.writeHead(200, { "x-final": "1" }).end("done");
    };
    const answer = await send();
    expect([answer.status, answer.headers.get("x-final"), await textOf(answer)]).toEqual([200, "1", "done"]);
  });

  test("what has come together is read together, and gives way to back-pressure beyond its limit", async () => {
    const CHUNK = Buffer.alloc(1_000, "x");
    handle = (_, response) => {
      response.cork();
      for (let count = 0; count < 500; count++) response.write(CHUNK);
      response.uncork();
      response.end();
    };
    const { body } = await send();
    const sizes: number[] = [];
    for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read()) sizes.push(chunk.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(500_000);
    expect(sizes.length).toBeLessThan(250);
    expect(Math.max(...sizes)).toBeLessThan(HELD_BYTES_MAX + CHUNK.length);
  });

  test("what came before the connection broke can be read", async () => {
    handle = (request, response) => {
      response.write("first");
      setImmediate(() => request.socket.destroy());
    };
    const { body } = await send();
    await expect.poll(() => server.open()).toBe(0);
    expect(new TextDecoder().decode(await body?.read())).toBe("first");
    await expect(body?.read()).rejects.toThrow("connection failed");
    await expect(body?.read()).rejects.toThrow("connection failed");
  });

  test("an answer that breaks off before the length that it named is broken", async () => {
    handle = (request, response) => {
      response.writeHead(200, { "content-length": 10 });
      response.write("first", () => request.socket.end());
    };
    await expect(send().then(textOf)).rejects.toThrow("connection failed");
  });

  test("errors say by the code of their cause how the connection failed", async () => {
    const refused = send({ url: "http://127.0.0.1:1/v1/x" });
    await expect(refused).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
    handle = (request) => request.socket.destroy();
    await expect(send()).rejects.toMatchObject({ cause: { code: "UND_ERR_SOCKET" } });
    open({ maxHeaderBytes: 100 });
    handle = (_, response) => response.writeHead(200, { "x-long": "x".repeat(100) }).end();
    await expect(send()).rejects.toMatchObject({ cause: { code: "UND_ERR_HEADERS_OVERFLOW" } });
  });

  test("what is no HTTP is an error", async () => {
    const tcp = createTcpServer((socket) => socket.on("error", doNothing).resume().end("SSH-2.0-OpenSSH_9.6\r\n"));
    await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(tcp.address() as AddressInfo).port}/`;
    await expect(send({ url })).rejects.toThrow("connection failed");
    await new Promise((resolve) => tcp.close(resolve));
  });

  test("a request is given up at once while it connects, and never leaves", async () => {
    let calls = 0;
    handle = (_, response) => {
      calls++;
      response.end();
    };
    const controller = new AbortController();
    const sent = send({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(sent).rejects.toThrow("enough");
    await textOf(await send());
    expect(calls).toBe(1);
  });

  test("reasons that are no errors come as they are", async () => {
    const controller = new AbortController();
    handle = () => controller.abort("enough");
    await expect(send({ signal: controller.signal })).rejects.toBe("enough");
  });

  test("an answer of which nothing is left over can be cancelled, and its signal aborted, without harm", async () => {
    handle = (_, response) => response.end("done");
    const controller = new AbortController();
    const answer = await send({ signal: controller.signal });
    expect(await textOf(answer)).toBe("done");
    controller.abort(new Error("late"));
    await answer.body?.cancel();
    expect(await answer.body?.read()).toBeUndefined();
    expect(await textOf(await send())).toBe("done");
  });

  test("a worker has as many requests as maxConnections says, and one more is refused", async () => {
    open({ maxConnections: 2 });
    const waiting: ServerResponse[] = [];
    handle = (_, response) => waiting.push(response);
    const sent = [send(), send()];
    await expect.poll(() => waiting.length).toBe(2);
    await expect(send()).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_UNREACHABLE" });
    for (const response of waiting.splice(0)) response.end("done");
    expect(await Promise.all(sent.map(async (answer) => textOf(await answer)))).toEqual(["done", "done"]);
    const next = send();
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.end("done");
    expect(await textOf(await next)).toBe("done");
    expect(server.connections()).toBe(2);
  });

  test("beyond maxWorkers the connections go that were used longest ago, and never those in use", async () => {
    open({ maxWorkers: 2 });
    const servers = await Promise.all([0, 1, 2].map(() => startServer((_, response) => response.end("done"))));
    const [a, b, c] = servers.map(({ url }) => ({ url: `${url}/` }));
    for (const to of [a, b, a, c]) await textOf(await send(to)); // c takes the place of b
    await expect.poll(() => Promise.all(servers.map((each) => each.open()))).toEqual([1, 0, 1]);
    for (const to of [a, c, a, c]) await textOf(await send(to));
    expect(servers.map((each) => each.connections())).toEqual([1, 1, 1]);
    handle = doNothing;
    open({ maxWorkers: 1 });
    const waiting = send();
    await expect(send(a)).rejects.toMatchObject({ code: "KVROUTE_UPSTREAM_UNREACHABLE" });
    await upstream.close();
    await expect(waiting).rejects.toThrow();
    await Promise.all(servers.map((each) => each.close()));
  });

  test("closing ends what is under way, and nothing is sent behind it", async () => {
    handle = (_, response) => response.write("begun");
    const { body } = await send();
    await body?.read();
    await upstream.close();
    await expect(body?.read()).rejects.toThrow("connection failed");
    await expect(send()).rejects.toMatchObject({ code: "KVROUTE_DISPOSED" });
    await expect.poll(() => server.open()).toBe(0);
    await upstream.close();
  });

  test.each([
    ["maxConnections", 65_536],
    ["maxWorkers", 65_536],
    ["keepAliveMs", 2 ** 31 - 1],
    ["connectTimeoutMs", 2 ** 31 - 1],
    ["maxHeaderBytes", 2 ** 31 - 1],
  ] as const)("%s is a whole number from 1 to its limit", async (option, most) => {
    for (const value of [1, most]) await undiciUpstream({ [option]: value }).close();
    for (const value of [0, most + 1, 1.5, Number.NaN, "1" as never]) {
      expect(() => undiciUpstream({ [option]: value })).toThrow(`Expected ${option} to be a whole number`);
    }
  });
});
