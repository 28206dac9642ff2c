import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { Clock } from "../clock.js";
import { systemClock } from "../system.js";
import { checkDelay, checkWhole } from "../transport/checks.js";
import type { TransportHub } from "../transport/hub.js";
import { webSocketPipe } from "../transport/websocket.js";
import { DATA_HEADER_BYTES, type FrameBytes } from "../transport/wire/frames.js";
import type { Pipe } from "../transport/wire/pipe.js";
import { listen } from "./listen.js";

export interface TransportServerOptions {
  /** Connects those who come. Its limits hold. */
  readonly hub: TransportHub;
  /** The address to listen at, 127.0.0.1 by default. */
  readonly host?: string | undefined;
  /** The port to listen at, by default one that is free. */
  readonly port?: number | undefined;
  /** Origins of web pages that may connect, none by default: a page of any site can reach a port of this machine. */
  readonly origins?: readonly string[] | undefined;
  /** Tells who may connect, say by a header. Everybody may by default. */
  readonly authorize?: ((request: IncomingMessage) => boolean) | undefined;
  /** How often each connection is asked for a sign of life, 15,000 by default; without one until the next time, it ends. */
  readonly pingMs?: number | undefined;
  /** Connections at one time, those included that are closing, 2,048 by default. */
  readonly maxConnections?: number | undefined;
  /** Bytes that wait for one connection to read them, by default eight windows; one that lets more pile up is ended. */
  readonly maxBufferedBytes?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** A server that is listening. */
export interface TransportServer {
  /** Where `connectWebSocket` finds it. */
  readonly url: string;
  readonly port: number;
  /** Stops listening and ends all connections of this server; the hub stays. */
  close(): Promise<void>;
}

/** Connections at one time beside those, which have not said what they want, or are being refused. */
export const UNDECIDED_MAX = 256;
const PING_MS = 15_000;
const CONNECTIONS_MAX = 2_048;

/** Listens for WebSockets, and attaches each to a hub. */
export async function serveTransport(options: TransportServerOptions): Promise<TransportServer> {
  const { hub, host = "127.0.0.1", port = 0, clock = systemClock } = options;
  const pingMs = checkDelay(options.pingMs ?? PING_MS, "pingMs");
  const maxConnections = checkWhole(options.maxConnections ?? CONNECTIONS_MAX, "maxConnections", 1, 2 ** 20);
  const maxBufferedBytes = checkWhole(options.maxBufferedBytes ?? bufferedBytesOf(hub), "maxBufferedBytes", 1, 2 ** 40);
  const maxPayload = hub.limits.maxEnvelopeBytes + DATA_HEADER_BYTES;
  const sockets = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false });
  const server = createServer((_, response) => response.writeHead(426).end("A WebSocket is expected here.\n"));
  server.on("upgrade", (request, stream, head) => {
    const status = sockets.clients.size < maxConnections ? statusFor(request, options) : 503;
    if (status !== 101) return refuse(stream, status);
    sockets.handleUpgrade(request, stream, head, (socket) => {
      hub.attach(bounded(socket, maxBufferedBytes), clock);
    });
  });
  server.maxConnections = maxConnections + UNDECIDED_MAX;
  const listening = await listen(server, host, port);
  const stopPinging = keepAlive(sockets, clock, pingMs);
  return {
    url: `ws://${listening.authority}`,
    port: listening.port,
    close: async () => {
      stopPinging();
      for (const socket of sockets.clients) socket.terminate();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections(); // those too that have said nothing, or half of it
      await closed;
    },
  };
}

function statusFor(request: IncomingMessage, { origins = [], authorize }: TransportServerOptions): number {
  const { origin } = request.headers;
  if (origin !== undefined && !origins.includes(origin)) return 403;
  try {
    return authorize === undefined || authorize(request) ? 101 : 401;
  } catch {
    return 500; // what a stranger sent made it throw; that is no reason to end the process
  }
}

/** How much may wait for one connection: what eight others may send it at once. */
export function bufferedBytesOf({ limits }: TransportHub): number {
  return 8 * Math.max(limits.windowBytes, limits.maxEnvelopeBytes);
}

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

function refuse(stream: Duplex, status: number): void {
  stream.on("error", () => undefined); // who is refused may be gone already
  stream.once("finish", () => stream.destroy()); // without waiting for the other side to hang up
  stream.end(`HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/** Makes a pipe that ends when its far end does not read. */
function bounded(socket: WebSocket, maxBufferedBytes: number): Pipe {
  const pipe = webSocketPipe(socket);
  return {
    listen: (listener) => pipe.listen(listener),
    post: (frame: FrameBytes) => {
      if (socket.bufferedAmount + frame.length > maxBufferedBytes) socket.terminate();
      else pipe.post(frame);
    },
    close: () => pipe.close(),
  };
}

/** Pings every connection once in a while, and ends those that have not answered the time before. */
function keepAlive(sockets: WebSocketServer, clock: Clock, pingMs: number): () => void {
  const silent = new WeakSet<WebSocket>();
  const ping = () => {
    timer = clock.setTimeout(ping, pingMs);
    for (const socket of sockets.clients) {
      if (silent.has(socket)) {
        socket.terminate();
        continue;
      }
      silent.add(socket);
      socket.once("pong", () => silent.delete(socket));
      socket.ping();
    }
  };
  let timer = clock.setTimeout(ping, pingMs);
  return () => clock.clearTimeout(timer);
}
