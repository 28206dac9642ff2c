import { createWriteStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { devNull } from "node:os";
import type { RouterOptions } from "../../src/gateway/router.js";

/** Starts what stands between clients and the engines, and gives its URL. */
export type Start = (engines: readonly string[]) => Promise<string>;

async function serve(engines: readonly string[], options: Partial<RouterOptions> = {}): Promise<string> {
  const { createRouter } = await import("../../src/gateway/router.js");
  const { serveGateway } = await import("../../src/node/serve-gateway.js");
  const { undiciUpstream } = await import("../../src/node/undici-upstream.js");
  const workers = engines.map((url, index) => ({ id: `w${index}`, url }));
  const gateway = createRouter({ workers, upstream: undiciUpstream(), ...options });
  return (await serveGateway({ gateway })).url;
}

/** The contenders, each in a process of its own. What is not there goes to the engine directly. */
export const PROXIES: Readonly<Record<string, Start>> = {
  serve: (engines) => serve(engines),

  "serve with its log": async (engines) => {
    const { createLog } = await import("../../src/cli/serve/log.js");
    const { logRequest } = await import("../../src/cli/serve/log-requests.js");
    const { logger } = createLog(createWriteStream(devNull), "info");
    return serve(engines, { onRequest: (record) => logRequest(logger, record) });
  },

  "node:http and undici": async (engines) => {
    const { Pool } = await import("undici");
    const pool = new Pool(engines[0] as string, { connections: 64 });
    const server = createServer((request, response) => {
      const { host: _, connection: __, ...headers } = request.headers;
      pool.stream(
        { path: request.url as string, method: request.method as "POST", headers, body: request, opaque: response },
        ({ statusCode, headers }) => response.writeHead(statusCode, headers as Record<string, string>),
        (error) => error && response.destroy(error),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },

  "Hono and fetch": async (engines) => {
    const { Hono } = await import("hono");
    const { createAdaptorServer } = await import("@hono/node-server");
    const app = new Hono();
    app.all("*", (context) => {
      const { method, headers, body, url } = context.req.raw;
      return fetch(engines[0] + new URL(url).pathname, { method, headers, body, duplex: "half" } as RequestInit);
    });
    const server = createAdaptorServer({ fetch: app.fetch });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
};
