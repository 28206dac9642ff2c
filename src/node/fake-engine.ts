import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createFakeEngine, type FakeEngine } from "../testing/fake-engine.js";
import { BrokenOff } from "../testing/faults.js";
import type { FakeEngineOptions } from "../testing/options.js";
import { listen } from "./listen.js";

export interface FakeEngineServerOptions extends FakeEngineOptions {
  /** The port to listen at, by default one that is free. */
  readonly port?: number | undefined;
}

/** A fake engine that listens on 127.0.0.1. */
export interface FakeEngineServer extends FakeEngine {
  /** Where it listens: the base URL of a client is this and "/v1". */
  readonly url: string;
  readonly port: number;
  /** Stops listening, and breaks off what is under way. */
  close(): Promise<void>;
}

/** Starts a fake engine as a server. */
export async function serveFakeEngine(options: FakeEngineServerOptions = {}): Promise<FakeEngineServer> {
  const engine = createFakeEngine(options);
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    fetch: async (request, { incoming }) => {
      try {
        return breakingOff(await engine.fetch(request), (incoming as IncomingMessage).socket);
      } catch (error) {
        if (!(error instanceof BrokenOff || request.signal.aborted)) throw error;
        (incoming as IncomingMessage).socket.destroy(); // there is no answer
        return new Response(null);
      }
    },
  });
  const { port, authority } = await listen(server, "127.0.0.1", options.port ?? 0);
  const close = async () => {
    engine.dispose();
    if ("closeAllConnections" in server) server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    url: `http://${authority}`,
    port,
    close,
    fetch: engine.fetch,
    stats: () => engine.stats(),
    get calls() {
      return engine.calls;
    },
    fail: (...faults) => engine.fail(...faults),
    onKvEvents: (listener) => engine.onKvEvents(listener),
    kvMessages: (from) => engine.kvMessages(from),
    dispose: () => engine.dispose(),
  };
}

/** Gives a response whose body, where it fails, breaks the connection off behind what was sent. */
function breakingOff(response: Response, socket: Socket): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value } = await reader.read();
          if (value === undefined) controller.close();
          else controller.enqueue(value);
        } catch {
          socket.destroySoon(); // the stream stays open: an end would look like that of a whole answer
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
