import { createAdaptorServer } from "@hono/node-server";
import { createSelectionApi, type SelectionApiOptions } from "../http/selection-api.js";
import { countOption } from "../selection/policies/numbers.js";
import { listen } from "./listen.js";

export interface SelectionServerOptions extends SelectionApiOptions {
  /** The address to listen at, 127.0.0.1 by default. */
  readonly host?: string | undefined;
  /** The port to listen at, by default one that is free. */
  readonly port?: number | undefined;
  /** Connections at a time; further ones are closed. 1 to 1,048,576, default 16,384. */
  readonly maxConnections?: number | undefined;
}

/** A selection service that listens. */
export interface SelectionServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening, and breaks off what is under way. */
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 1_048_576;
const CONNECTIONS_DEFAULT = 16_384;

/**
 * Starts a server of the selection API.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of range
 */
export async function serveSelection(options: SelectionServerOptions): Promise<SelectionServer> {
  const { host = "127.0.0.1", port = 0, maxConnections = CONNECTIONS_DEFAULT } = options;
  countOption("maxConnections", maxConnections, 1, CONNECTIONS_MAX);
  const api = createSelectionApi(options);
  const server = createAdaptorServer({ overrideGlobalObjects: false, fetch: (request) => api.fetch(request) });
  server.maxConnections = maxConnections;
  const listening = await listen(server, host, port);
  return {
    url: `http://${listening.authority}`,
    port: listening.port,
    close: async () => {
      if ("closeAllConnections" in server) server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
