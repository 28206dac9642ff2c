import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".map": "application/json",
  ".css": "text/css",
};

export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}

/** What a server answers besides files. */
export interface PageOptions {
  /** Pages by their path. */
  readonly pages?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Serves the files of a folder, and pages of its own, with headers that a test chooses. */
export async function servePages(folder: string, { pages = {}, headers = {} }: PageOptions = {}): Promise<PageServer> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const type = TYPES[extname(path)] ?? "text/html; charset=utf-8";
    try {
      const body = pages[path] ?? readFileSync(join(folder, normalize(path)));
      response.writeHead(200, { "content-type": type, ...headers }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
