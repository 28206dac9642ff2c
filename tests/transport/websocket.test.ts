import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Clock } from "../../src/clock.js";
import {
  bufferedBytesOf,
  serveTransport,
  type TransportServerOptions,
  UNDECIDED_MAX,
} from "../../src/node/websocket-server.js";
import { TransportHub, type TransportHubOptions } from "../../src/transport/hub.js";
import { connectWebSocket } from "../../src/transport/websocket.js";
import { encodeFrame } from "../../src/transport/wire/frames.js";
import { letter, take, takeAll, watch } from "../contract/world.js";
import { until } from "../support/until.js";
import { parcel } from "./hostile-guest.js";

const closers: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(hubOptions: TransportHubOptions = {}, options: Omit<TransportServerOptions, "hub"> = {}) {
  const hub = new TransportHub(hubOptions);
  const server = await serveTransport({ hub, ...options });
  closers.push(() => server.close());
  const misdeeds: string[] = [];
  hub.onMisdeed((_, error) => misdeeds.push(error.message));
  return { hub, url: server.url, misdeeds };
}

const UPGRADE = `GET / HTTP/1.1
Host: a
Connection: Upgrade
Upgrade: websocket
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==

`.replaceAll("\n", "\r\n");

/** A socket in the hands of a test. */
function raw(url: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(url, { headers });
  const told = { closed: undefined as number | undefined, error: "" };
  socket.on("error", (error) => {
    told.error = error.message;
  });
  socket.on("close", (code) => {
    told.closed = code;
  });
  closers.push(async () => socket.terminate());
  return { socket, told };
}

describe("the server", () => {
  test("listens at 127.0.0.1 by default, and answers a page's request with what it expects", async () => {
    const { url } = await serve();
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+$/);
    const response = await fetch(url.replace("ws:", "http:"));
    expect([response.status, await response.text()]).toEqual([426, "A WebSocket is expected here.\n"]);
  });

  test("says where it cannot listen", async () => {
    const { url } = await serve();
    await expect(serveTransport({ hub: new TransportHub(), port: Number(new URL(url).port) })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });

  test("refuses web pages, but for those of an origin that may", async () => {
    const { url } = await serve({}, { origins: ["https://good.example"] });
    const evil = raw(url, { origin: "https://evil.example" });
    await until(() => evil.told.error !== "", "it is refused");
    expect(evil.told.error).toContain("403");
    await once(raw(url, { origin: "https://good.example" }).socket, "open");
  });

  test("refuses whom authorize does not let in", async () => {
    const { url } = await serve({}, { authorize: ({ headers }) => headers.authorization === "Bearer x" });
    const stranger = raw(url);
    await until(() => stranger.told.error !== "", "it is refused");
    expect(stranger.told.error).toContain("401");
    await once(raw(url, { authorization: "Bearer x" }).socket, "open");
  });

  test("refuses whoever makes authorize throw, and goes on", async () => {
    const { url } = await serve({}, { authorize: ({ url: path = "" }) => new URL(path, "http://a").pathname === "/" });
    const { port } = new URL(url);
    const stranger = connect(Number(port), "127.0.0.1");
    closers.push(async () => stranger.destroy());
    let answer = "";
    stranger.on("data", (data) => {
      answer += data;
    });
    stranger.write(UPGRADE.replace("/ HTTP", "//[ HTTP"));
    await once(stranger, "end");
    expect(answer).toMatch(/^HTTP\/1\.1 500 /);
    await once(raw(url).socket, "open");
  });

  test("lets go of those who are refused and do not hang up, and of those who say nothing", async () => {
    const hub = new TransportHub();
    const server = await serveTransport({ hub, authorize: () => false });
    const open = async () => {
      const stream = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
      stream.on("error", () => undefined); // it may be reset
      closers.push(async () => stream.destroy());
      await once(stream, "connect");
      return stream;
    };
    const [refused, silent, half] = [await open(), await open(), await open()];
    refused.write(UPGRADE);
    half.write(UPGRADE.slice(0, 20));
    await once(refused, "data");
    const gone = once(silent, "close");
    silent.resume().on("end", () => silent.destroy());
    await server.close(); // waits for all connections
    await gone;
  });

  test("ends the wait for who connects and says nothing, at a hub without a clock as well", async () => {
    const timers: { callback: () => void; delayMs: number }[] = [];
    const clock: Clock = {
      now: () => 0,
      setTimeout: (callback, delayMs) => timers.push({ callback, delayMs }),
      clearTimeout: () => undefined,
    };
    const { url, hub } = await serve({ helloTimeoutMs: 70 }, { clock });
    const silent = raw(url);
    await until(() => hub.strangers === 1, "it is connected");
    for (const { callback, delayMs } of timers) if (delayMs === 70) callback();
    await until(() => silent.told.closed !== undefined, "it is refused");
    expect(hub.strangers).toBe(0);
  });

  test("lets eight windows wait for a connection, whatever their size, unless told otherwise", async () => {
    const hubs = [{}, { windowBytes: 2 ** 30 }, { maxEnvelopeBytes: 2 ** 30 }].map(
      (limits) => new TransportHub(limits),
    );
    expect(hubs.map((hub) => bufferedBytesOf(hub))).toEqual([2 ** 29, 2 ** 33, 2 ** 33]);
  });

  test("refuses more connections than may be, and has room again when one ends", async () => {
    const { url, hub } = await serve({}, { maxConnections: 1 });
    const first = raw(url);
    await once(first.socket, "open");
    const second = raw(url);
    await until(() => second.told.error !== "", "it is refused");
    expect(second.told.error).toContain("503");
    first.socket.terminate();
    await until(() => hub.strangers === 0, "the first is gone");
    await once(raw(url).socket, "open");
  });

  test("has room for so many connections that have not said what they want, and closes those beyond", async () => {
    const { url } = await serve({}, { maxConnections: 1 });
    const { port } = new URL(url);
    const closed = new Set<Socket>();
    const silent = Array.from({ length: 1 + UNDECIDED_MAX }, () => connect(Number(port), "127.0.0.1"));
    closers.push(async () => silent.map((socket) => socket.destroy()));
    for (const socket of silent) socket.on("error", () => {}).on("close", () => closed.add(socket));
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    const late = connect(Number(port), "127.0.0.1").on("error", () => {});
    await once(late, "close");
    expect(closed.size).toBe(0);
    for (const socket of silent) socket.destroy();
    await until(() => closed.size === silent.length, "they have gone");
    await expect
      .poll(async () => {
        const { socket, told } = raw(url);
        await until(() => socket.readyState === WebSocket.OPEN || told.error !== "", "it is told");
        return told.error;
      })
      .toBe("");
  });

  test("reads no message that is larger than an envelope may be", async () => {
    const { url, hub } = await serve({ maxEnvelopeBytes: 100 });
    const fits = raw(url);
    await once(fits.socket, "open");
    fits.socket.send(encodeFrame({ kind: "hello", rank: 1 }));
    await until(() => hub.ranks.length === 1, "it is welcomed");
    fits.socket.send(encodeFrame({ kind: "data", epoch: 1, envelope: parcel(1, 1, 100) }));
    fits.socket.send(encodeFrame({ kind: "data", epoch: 1, envelope: parcel(1, 1, 101) }));
    await until(() => fits.told.closed !== undefined, "it is closed");
    expect(fits.told.closed).toBe(1009);
    expect(hub.ranks).toEqual([]);
  });

  test("ends a connection that sends texts", async () => {
    const { url, hub, misdeeds } = await serve();
    const { socket, told } = raw(url);
    await once(socket, "open");
    socket.send("hello");
    await until(() => told.closed !== undefined, "it is closed");
    expect([told.closed, hub.strangers]).toEqual([1003, 0]);
    expect(misdeeds).toEqual(["Expected binary messages, got one of type string."]);
  });

  test("refuses another version of the framing, and says which it speaks", async () => {
    const { url } = await serve();
    const { socket } = raw(url);
    socket.binaryType = "arraybuffer";
    await once(socket, "open");
    const hello = encodeFrame({ kind: "hello", rank: 1 });
    hello[2] = 9;
    socket.send(hello);
    const [answer] = (await once(socket, "message")) as [ArrayBuffer];
    expect(Buffer.from(answer).toString()).toContain("Expected version 1 of the framing, got version 9");
  });

  test("ends a connection that gives no sign of life until the next ping, and keeps one that does", async () => {
    const timers: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      setTimeout: (callback, delayMs) => delayMs === 15_000 && timers.push(callback), // not the wait for a hello
      clearTimeout: () => undefined,
    };
    const { url, hub } = await serve({}, { clock });
    const polite = raw(url);
    await once(polite.socket, "open");
    const silent = new WebSocket(url, { autoPong: false });
    closers.push(async () => silent.terminate());
    await once(silent, "open");
    expect(hub.strangers).toBe(2);
    const pinged = [once(polite.socket, "ping"), once(silent, "ping")];
    timers.at(-1)?.();
    await Promise.all(pinged);
    // a pong comes before what its socket sends after it
    polite.socket.send(encodeFrame({ kind: "hello", rank: 1 }));
    await until(() => hub.ranks.includes(1), "the pong has come");
    timers.at(-1)?.();
    await until(() => hub.strangers === 0, "the silent one is ended");
    expect(hub.ranks).toEqual([1]);
  });

  test("ends a connection that does not read, once too much waits for it", async () => {
    const { url, hub } = await serve({ windowBytes: 2 ** 26 }, { maxBufferedBytes: 2 ** 23 });
    const { socket } = raw(url);
    await once(socket, "open");
    socket.send(encodeFrame({ kind: "hello", rank: 1 }));
    await until(() => hub.ranks.length === 1, "it is welcomed");
    socket.pause();
    const sender = await hub.connect(2);
    const lost: number[] = [];
    sender.onPeerLost((rank) => lost.push(rank));
    const sending = (async () => {
      for (let id = 0; id < 60; id++) await sender.send(letter(1, id, new Uint8Array(2 ** 20)));
    })();
    await expect(sending.then(() => until(() => lost.length > 0, "it is lost"))).resolves.toBeUndefined();
    expect(hub.ranks).toEqual([2]);
  });

  test.each([
    ["pingMs", 1, 2 ** 31 - 1],
    ["maxConnections", 1, 2 ** 20],
    ["maxBufferedBytes", 1, 2 ** 40],
  ] as const)("takes %s from %i to %i", async (name, least, most) => {
    for (const value of [least, most]) await serve({}, { [name]: value });
    for (const value of [least - 1, most + 1, 1.5]) {
      await expect(serve({}, { [name]: value })).rejects.toMatchObject({ code: "KVROUTE_ARGUMENT_RANGE" });
    }
    for (const value of ["1", Object.create(null), Symbol("1")]) {
      await expect(serve({}, { [name]: value })).rejects.toMatchObject({ code: "KVROUTE_ARGUMENT_TYPE" });
    }
  });
});

describe("the client", () => {
  test("says that nobody listens, that a URL is none, and that there is no WebSocket", async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as { port: number };
    await new Promise((resolve) => probe.close(resolve));
    const options = { rank: 1, WebSocket };
    const broken = { code: "KVROUTE_TRANSPORT_BROKEN" };
    await expect(connectWebSocket(`ws://127.0.0.1:${port}`, options)).rejects.toMatchObject(broken);
    await expect(connectWebSocket("nowhere", options)).rejects.toMatchObject(broken);
    await expect(connectWebSocket("ws://127.0.0.1:1", { rank: 1, WebSocket: 7 as never })).rejects.toMatchObject({
      code: "KVROUTE_ARGUMENT_TYPE",
    });
  });

  test.each([{ rank: -1 }, { rank: 1, windowBytes: 0 }])(
    "opens no socket for options that are none: %o",
    async (options) => {
      let sockets = 0;
      class Counted extends WebSocket {
        constructor(url: string) {
          super(url);
          sockets++;
        }
      }
      const { url } = await serve();
      const connecting = connectWebSocket(url, { ...options, WebSocket: Counted });
      await expect(connecting).rejects.toMatchObject({ code: "KVROUTE_ARGUMENT_RANGE" });
      expect(sockets).toBe(0);
    },
  );

  test("gives a connection up that is not made", async () => {
    const streams: Socket[] = [];
    const deaf = createServer((stream) => streams.push(stream)).listen(0, "127.0.0.1");
    closers.push(() => {
      for (const stream of streams) stream.destroy();
      return new Promise((resolve) => deaf.close(resolve));
    });
    await once(deaf, "listening");
    const { port } = deaf.address() as { port: number };
    const giveUp = new AbortController();
    const reason = new Error("enough");
    const connecting = connectWebSocket(`ws://127.0.0.1:${port}`, { rank: 1, WebSocket, signal: giveUp.signal });
    await until(() => streams.length === 1, "it has begun to connect");
    giveUp.abort(reason);
    await expect(connecting).rejects.toBe(reason);
  });

  test("breaks with what the hub says, when the hub closes", async () => {
    const { url, hub } = await serve();
    const transport = await connectWebSocket(url, { rank: 1, WebSocket });
    const taking = watch(takeAll(transport).then(() => undefined));
    await hub.close("good night");
    await taking.settled;
    expect(taking.error).toMatchObject({
      code: "KVROUTE_TRANSPORT_BROKEN",
      message: expect.stringContaining("good night"),
    });
  });

  test("has sent everything when its closing has settled", async () => {
    const { url, hub } = await serve();
    const destination = await hub.connect(2);
    const transport = await connectWebSocket(url, { rank: 1, WebSocket });
    for (let id = 0; id < 20; id++) await transport.send(letter(2, id, new Uint8Array(100_000)));
    await transport.close();
    expect(await take(destination, 20)).toHaveLength(20);
  });
});

test("a process that is killed is lost, and what it sent before is not", async () => {
  const { url, hub } = await serve();
  const destination = await hub.connect(0);
  const lost: number[] = [];
  destination.onPeerLost((rank) => lost.push(rank));
  const hex = (frame: Uint8Array) => Buffer.from(frame).toString("hex");
  const frames = [
    encodeFrame({ kind: "hello", rank: 7 }),
    encodeFrame({ kind: "data", epoch: 1, envelope: parcel(7, 0) }),
  ];
  const code = `
    import { WebSocket } from "ws";
    const socket = new WebSocket(${JSON.stringify(url)});
    socket.on("open", () => socket.send(Buffer.from("${hex(frames[0] as Uint8Array)}", "hex")));
    socket.on("message", () => socket.send(Buffer.from("${hex(frames[1] as Uint8Array)}", "hex")));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], { stdio: "inherit" });
  closers.push(async () => child.kill("SIGKILL"));
  await until(() => hub.ranks.includes(7), "the process is there");
  const [envelope] = await take(destination, 1);
  expect(envelope?.source).toBe(7);
  child.kill("SIGKILL");
  await until(() => lost.length > 0, "the loss is told");
  expect([lost, hub.ranks]).toEqual([[7], [0]]);
});
