import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createSelectionApi, type SelectionApiOptions } from "../http/selection-api.js";

export interface SelectionServerOptions extends SelectionApiOptions {
  /** The address to listen at, 127.0.0.1 by default. */
  readonly host?: string | undefined;
  /** The port to listen at, by default one that is free. */
  readonly port?: number | undefined;
}

/** A selection service that listens. */
export interface SelectionServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening, and breaks off what is under way. */
  close(): Promise<void>;
}

/** Starts a server of the selection API. */
export async function serveSelection(options: SelectionServerOptions): Promise<SelectionServer> {
  const { host = "127.0.0.1", port = 0 } = options;
  const api = createSelectionApi(options);
  const server = createAdaptorServer({ overrideGlobalObjects: false, fetch: (request) => api.fetch(request) });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    close: async () => {
      if ("closeAllConnections" in server) server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
