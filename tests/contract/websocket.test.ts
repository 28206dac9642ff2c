import { WebSocket } from "ws";
import { serveTransport } from "../../src/node/websocket-server.js";
import { connectWebSocket } from "../../src/transport/websocket.js";
import { transportContract } from "./transport.js";
import { hubOf, wiredWorld } from "./wired.js";

transportContract({
  name: "WebSocket",
  open: async (limits) => {
    const hub = hubOf(limits);
    const server = await serveTransport({ hub });
    const sockets = new Map<number, WebSocket>();
    return wiredWorld({
      hub,
      connect: (rank) => {
        class Noted extends WebSocket {
          constructor(url: string) {
            super(url);
            if (!sockets.has(rank)) sockets.set(rank, this);
          }
        }
        return connectWebSocket(server.url, { ...limits, rank, WebSocket: Noted });
      },
      kill: (rank) => sockets.get(rank)?.terminate(),
      close: async () => {
        await hub.close();
        await server.close();
      },
    });
  },
});
