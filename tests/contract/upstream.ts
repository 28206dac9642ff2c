import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { joinBytes } from "../../src/bytes.js";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { Answer } from "../../src/gateway/types.js";
import type { Upstream, UpstreamRequest } from "../../src/gateway/upstream.js";

/** What an implementation of `Upstream` is made for the tests with. */
export interface UpstreamUnderTest {
  readonly name: string;
  open(): { readonly upstream: Upstream; close(): Promise<void> };
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

async function readAll({ body }: Answer): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read()) chunks.push(chunk);
  return joinBytes(chunks);
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** What every implementation of `Upstream` keeps, before a server on loopback. */
export function upstreamContract(subject: UpstreamUnderTest): void {
  describe(`${subject.name}: the contract of upstreams`, () => {
    let handle: Handler;
    let url: string;
    const server = createServer((request, response) => handle(request, response));
    const { upstream, close } = subject.open();
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    afterAll(async () => {
      await close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    const send = (more: Partial<UpstreamRequest> = {}) =>
      upstream.send({
        ...{ method: "POST", url: `${url}/v1/x?y=1`, headers: HeaderList.of(), bytes: new TextEncoder().encode("{}") },
        signal: new AbortController().signal,
        ...more,
      });

    test("sends method, path, query, headers and bytes, and the length of the bytes", async () => {
      const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index);
      let seen: Record<string, unknown> = {};
      handle = async (request, response) => {
        const chunks: Uint8Array[] = [];
        for await (const chunk of request) chunks.push(chunk);
        seen = {
          method: request.method,
          url: request.url,
          headers: request.headers,
          body: new Uint8Array(joinBytes(chunks)),
        };
        response.end();
      };
      const headers = HeaderList.ofRaw([
        "X-A",
        "1",
        "authorization",
        "Bearer x",
        "connection",
        "close, X-Hop, not a name",
        "x-hop",
        "1",
        "host",
        "other",
      ]);
      await readAll(await send({ bytes, headers }));
      expect(seen).toMatchObject({
        method: "POST",
        url: "/v1/x?y=1",
        headers: { "x-a": "1", authorization: "Bearer x" },
      });
      expect(seen["body"]).toEqual(bytes);
      expect(seen["headers"]).toMatchObject({ "content-length": "100000", host: new URL(url).host });
      expect(seen["headers"]).not.toHaveProperty("x-hop");
      await readAll(await send({ method: "GET", bytes: undefined }));
      expect(seen).toMatchObject({ method: "GET", body: new Uint8Array(0) });
    });

    test("gives status and headers before the body is there, and the body as it comes", async () => {
      let go: (text?: string) => void = () => {};
      handle = (_, response) => {
        response.writeHead(201, "Made", { "content-type": "text/event-stream", "x-engine": "e1" }).flushHeaders();
        go = (part) => (part === undefined ? response.end() : response.write(part));
      };
      const answer = await send();
      expect([answer.status, answer.statusText, answer.headers.get("x-engine")]).toEqual([201, "Made", "e1"]);
      for (const part of ["data: 1\n\n", "data: 2\r\n\r\n"]) {
        go(part);
        expect(text((await answer.body?.read()) as Uint8Array)).toBe(part);
      }
      go();
      expect(await answer.body?.read()).toBeUndefined();
      for (const name of ["connection", "keep-alive", "transfer-encoding"])
        expect(answer.headers.has(name)).toBe(false);
    });

    test("gives errors and redirects as answers", async () => {
      for (const status of [307, 404, 429, 503]) {
        handle = (_, response) => response.writeHead(status, { location: "/elsewhere", "retry-after": "3" }).end("why");
        const answer = await send();
        expect([answer.status, answer.headers.get("retry-after"), text(await readAll(answer))]).toEqual([
          status,
          "3",
          "why",
        ]);
      }
    });

    test("says of a body how it is encoded, and of one that it has decoded nothing", async () => {
      const { gzipSync, gunzipSync } = await import("node:zlib");
      const body = gzipSync("hello");
      handle = (_, response) =>
        response.writeHead(200, { "content-encoding": "gzip", "content-length": body.length }).end(body);
      const answer = await send();
      const given = await readAll(answer);
      const isEncoded = answer.headers.get("content-encoding") === "gzip";
      expect(text(isEncoded ? gunzipSync(given) : given)).toBe("hello");
      expect(answer.headers.get("content-length")).toBe(isEncoded ? String(body.length) : null);
    });

    test("gives no body where there can be none", async () => {
      for (const [method, status] of [
        ["HEAD", 200],
        ["POST", 204],
        ["GET", 304],
      ] as const) {
        handle = (_, response) => response.writeHead(status).end();
        const answer = await send({ method, bytes: undefined });
        expect([answer.status, await readAll(answer)]).toEqual([status, new Uint8Array(0)]);
      }
    });

    test("sends nothing where its signal has aborted already, or the URL is none", async () => {
      let calls = 0;
      handle = (_, response) => {
        calls++;
        response.end();
      };
      const reason = new Error("enough");
      await expect(send({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      await expect(send({ url: "nowhere" })).rejects.toThrow();
      expect(calls).toBe(0);
    });

    test("refuses what no client of HTTP sends, as the caller's fault, whatever is sent beside it", async () => {
      let calls = 0;
      handle = (_, response) => {
        calls++;
        response.end();
      };
      const bytes = new TextEncoder().encode("{}");
      const header = (name: string, value: string) => ({ headers: HeaderList.of([[name, value]]) });
      const refused: Partial<UpstreamRequest>[] = [
        ...["CONNECT", "TRACE", "TRACK", "trace", "GE T", "", "G\r\nX: y"].map((method) => ({
          method,
          bytes: undefined,
        })),
        ...["GET", "HEAD", "get"].map((method) => ({ method, bytes })),
        ...["x y", "x:", "", "\u00e9", "x\r\ny"].map((name) => header(name, "1")),
        ...["1\r\nx-other: 2", "1\n2", "\0", "\u0001", "\u2026"].map((value) => header("x-a", value)),
        ...["/v1/a b", "/v1/\r\nx", "/v1/\u00e9"].map((path) => ({ url: `${url}${path}` })),
      ];
      for (const more of refused) {
        await expect(send(more), JSON.stringify(more)).rejects.toMatchObject({
          code: "KVROUTE_GATEWAY_REQUEST",
          status: 400,
        });
      }
      expect(calls).toBe(0);
      const secret = "s\u0001ecret";
      await expect(send(header("authorization", secret))).rejects.not.toThrow(secret);
    });

    test("sends other methods, bodies of no bytes, and headers of any legal value", async () => {
      const seen: unknown[] = [];
      handle = (request, response) => {
        seen.push([request.method, request.headers["x-a"]]);
        response.end();
      };
      const headers = HeaderList.of([["x-a", "a\t~\u00ff"]]);
      for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]) {
        await readAll(await send({ method, headers, bytes: new Uint8Array(0) }));
      }
      expect(seen).toEqual(
        ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"].map((method) => [method, "a\t~\u00ff"]),
      );
    });

    test("rejects where nobody answers, and where the connection closes before an answer", async () => {
      await expect(send({ url: "http://127.0.0.1:1/v1/x" })).rejects.toThrow();
      handle = (request) => request.socket.destroy();
      await expect(send()).rejects.toThrow();
    });

    test("rejects a read where the connection breaks in the middle of the body", async () => {
      handle = (request, response) => {
        response.write("data: 1\n\n");
        setImmediate(() => request.socket.destroy());
      };
      await expect(readAll(await send())).rejects.toThrow();
    });

    test("ends the connection when its signal aborts, before the headers and within the body, with the reason", async () => {
      for (const begun of [false, true]) {
        const controller = new AbortController();
        let gone = false;
        const arrived = new Promise<void>((resolve) => {
          handle = (_, response) => {
            response.once("close", () => {
              gone = true;
            });
            if (begun) response.write("data: 1\n\n");
            resolve();
          };
        });
        const answer = send({ signal: controller.signal });
        const reading = answer.then(async ({ body }) => {
          await body?.read();
          await body?.read();
        });
        await arrived;
        if (begun) await answer;
        const reason = new Error("enough");
        controller.abort(reason);
        await expect(reading).rejects.toBe(reason);
        await expect.poll(() => gone).toBe(true);
      }
    });

    test("ends the connection when the body is cancelled", async () => {
      let gone = false;
      handle = (_, response) => {
        response.once("close", () => {
          gone = true;
        });
        response.write("data: 1\n\n");
      };
      const answer = await send();
      await answer.body?.read();
      await answer.body?.cancel("enough");
      await expect.poll(() => gone).toBe(true);
      expect(await answer.body?.read()).toBeUndefined();
    });

    test("does not take more of a body than is read, but for what the connection holds", async () => {
      const CHUNK = new Uint8Array(65_536);
      const MOST = 100_000;
      let sent = 0;
      handle = (_, response) => {
        const more = () => {
          while (sent < MOST && response.write(CHUNK)) sent++;
          if (sent < MOST) response.once("drain", more);
        };
        more();
      };
      const answer = await send();
      await answer.body?.read();
      let before = -1;
      const hasComeToRest = () => {
        const rests = sent === before;
        before = sent;
        return rests;
      };
      await expect.poll(hasComeToRest, { interval: 100 }).toBe(true);
      expect(sent).toBeLessThan(MOST / 10);
      await answer.body?.cancel();
    });
  });
}
