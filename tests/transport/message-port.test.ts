import { once } from "node:events";
import { MessageChannel, type MessagePort as NodePort, Worker } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { TransportHub } from "../../src/transport/hub.js";
import { connectMessagePort, messagePortPipe, type PortLike } from "../../src/transport/message-port.js";
import { encodeFrame, type FrameBytes } from "../../src/transport/wire/frames.js";
import { letter, take, takeAll } from "../contract/world.js";
import { until } from "../support/until.js";

const ports: NodePort[] = [];
const threads: Worker[] = [];
afterEach(async () => {
  for (const port of ports.splice(0)) port.close();
  for (const thread of threads.splice(0)) await thread.terminate();
});

function channel(): MessageChannel {
  const made = new MessageChannel();
  ports.push(made.port1, made.port2);
  return made;
}

/** A thread that runs a text, with `parentPort` at hand. */
function thread(code: string): Worker {
  const worker = new Worker(`const { parentPort } = require("node:worker_threads"); ${code}`, { eval: true });
  worker.on("error", () => undefined); // some of them are meant to throw
  threads.push(worker);
  return worker;
}

const hello = (rank: number) => `parentPort.postMessage(Uint8Array.of(0x4b, 0x56, 1, 1, ${rank}, 0, 0, 0));`;

/** Says hello under rank 1 and sends back what is sent to it. */
const ECHO = `${hello(1)}
  parentPort.on("message", (frame) => {
    if (frame[3] !== 6) return;
    const view = new DataView(frame.buffer, frame.byteOffset);
    const [source, destination] = [view.getUint32(8, true), view.getUint32(12, true)];
    view.setUint32(8, destination, true);
    view.setUint32(12, source, true);
    parentPort.postMessage(frame);
  });`;

async function hubWith(worker: Worker) {
  const hub = new TransportHub();
  const misdeeds: string[] = [];
  hub.onMisdeed((_, error) => misdeeds.push(error.message));
  const transport = await hub.connect(0);
  const lost: string[] = [];
  transport.onPeerLost((_, reason) => lost.push(reason.message));
  hub.attach(messagePortPipe(worker));
  return { hub, misdeeds, transport, lost };
}

describe("a worker thread", () => {
  test("is a port like any other", async () => {
    const { transport } = await hubWith(thread(ECHO));
    await until(() => transport.ranks.includes(1), "the thread is there");
    const bytes = new Uint8Array(100_000).map((_, index) => index);
    await transport.send(letter(1, 5, bytes.slice()));
    const [envelope] = await take(transport, 1);
    expect(envelope).toMatchObject({ source: 1, requestId: 5n });
    expect(envelope?.bytes).toEqual(bytes);
  });

  test.each([
    ["is terminated", hello(1), true, "the thread ended with code 1"],
    ["ends", `${hello(1)} setImmediate(() => process.exit(3));`, false, "the thread ended with code 3"],
    ["throws", `${hello(1)} setImmediate(() => { throw new Error("oh no"); });`, false, "the thread threw: oh no"],
    ["throws nothing", `${hello(1)} setImmediate(() => { throw null; });`, false, "the thread threw: null"],
  ])("that %s is lost, with the reason", async (_, code, isTerminated, reason) => {
    const worker = thread(`${code} parentPort.on("message", () => undefined);`);
    const { hub, transport, lost } = await hubWith(worker);
    if (isTerminated) {
      await until(() => transport.ranks.includes(1), "the thread is there");
      await worker.terminate();
    }
    await until(() => lost.length > 0, "the loss is told");
    expect(lost[0]).toContain(reason);
    expect(hub.ranks).toEqual([0]);
  });

  test("that throws is heard to its end: what it sent before may come after the news", async () => {
    const listeners = new Map<string, (argument: unknown) => void>();
    const hub = new TransportHub();
    const transport = await hub.connect(0);
    const lost: string[] = [];
    transport.onPeerLost((_, reason) => lost.push(reason.message));
    hub.attach(
      messagePortPipe({
        postMessage: () => undefined,
        on: (event: string, listener) => listeners.set(event, listener),
      }),
    );
    listeners.get("error")?.(new Error("oh no"));
    listeners.get("message")?.(encodeFrame({ kind: "hello", rank: 1 }));
    expect(hub.ranks).toEqual([0, 1]);
    listeners.get("exit")?.(1);
    await until(() => lost.length > 0, "the loss is told");
    expect(lost[0]).toContain("the thread threw: oh no");
  });

  test("whose port was handed over is lost with the thread", async () => {
    const { port1, port2 } = channel();
    const worker = new Worker(`require("node:worker_threads").workerData.on("message", () => undefined);`, {
      eval: true,
      workerData: port2,
      transferList: [port2],
    });
    threads.push(worker);
    const hub = new TransportHub();
    hub.attach(messagePortPipe(port1));
    expect(hub.strangers).toBe(1);
    await once(worker, "online");
    await worker.terminate();
    await until(() => hub.strangers === 0, "the hub hears of it");
  });
});

describe("what is no frame", () => {
  test.each<[string, () => unknown]>([
    ["a text", () => "hello"],
    ["an object", () => ({ kind: "hello", rank: 1 })],
    ["nothing", () => null],
    ["an ArrayBuffer", () => new ArrayBuffer(8)],
    ["shared memory", () => new Uint8Array(new SharedArrayBuffer(8))],
  ])("%s ends the connection, and is reported", async (_, message) => {
    const { port1, port2 } = channel();
    const hub = new TransportHub();
    const misdeeds: string[] = [];
    hub.onMisdeed((_rank, error) => misdeeds.push(error.message));
    hub.attach(messagePortPipe(port1));
    port2.postMessage(message());
    await until(() => misdeeds.length > 0, "the hub reports it");
    expect(misdeeds[0]).toContain("Expected bytes over the port");
    expect(hub.strangers).toBe(0);
  });

  test("a message that cannot be read breaks an end, which says so", async () => {
    const listeners = new Map<string, (argument: unknown) => void>();
    let isClosed = false;
    const port: PortLike = {
      postMessage: () => undefined,
      close: () => {
        isClosed = true;
      },
      on: (event: string, listener: (argument: unknown) => void) => listeners.set(event, listener),
    };
    const connecting = connectMessagePort(port, { rank: 1 });
    const limits = { windowEnvelopes: 1, windowBytes: 1, maxEnvelopeBytes: 1 };
    listeners.get("message")?.(encodeFrame({ kind: "welcome", ...limits, peers: [{ rank: 1, epoch: 1 }] }));
    const transport = await connecting;
    const unreadable = new Error("not of this realm");
    listeners.get("messageerror")?.(unreadable);
    await expect(takeAll(transport)).rejects.toMatchObject({
      code: "KVROUTE_TRANSPORT_BROKEN",
      message: expect.stringContaining("a message could not be read"),
      cause: { code: "KVROUTE_TRANSPORT_FRAME", cause: unreadable },
    });
    expect(isClosed).toBe(true);
  });
});

describe("memory", () => {
  /** Notes which frames changed hands. */
  function watched(port: NodePort): { port: PortLike; posted: { bytes: number; moved: boolean }[] } {
    const posted: { bytes: number; moved: boolean }[] = [];
    return {
      posted,
      port: {
        postMessage: (message, transfer) => {
          posted.push({ bytes: (message as FrameBytes).byteLength, moved: transfer.length === 1 });
          port.postMessage(message, transfer);
        },
        close: () => port.close(),
        on: (event, listener) => port.on(event, listener),
      },
    };
  }

  test("of large frames changes hands, small ones are copied, and the sender's bytes stay its own", async () => {
    const { port1, port2 } = channel();
    const hub = new TransportHub();
    hub.attach(messagePortPipe(port1));
    const { port, posted } = watched(port2);
    const transport = await connectMessagePort(port, { rank: 1 });
    const [small, large] = [new Uint8Array(16_343).fill(1), new Uint8Array(16_344).fill(2)];
    await transport.send(letter(1, 0, small));
    await transport.send(letter(1, 1, large));
    expect(posted.slice(1)).toEqual([
      { bytes: 16_383, moved: false },
      { bytes: 16_384, moved: true },
    ]);
    expect([small.byteLength, large.byteLength]).toEqual([16_343, 16_344]);
    expect((await take(transport, 2)).map(({ bytes }) => bytes)).toEqual([small, large]);
    await transport.close();
  });

  test("is copied over ports that cannot move it, as workerd's", async () => {
    const { port1, port2 } = channel();
    const hub = new TransportHub();
    hub.attach(messagePortPipe(port1));
    let refusals = 0;
    const port: PortLike = {
      postMessage(message, transfer) {
        refusals += transfer.length;
        if (transfer.length > 0) throw new Error("Transfer list is not supported");
        port2.postMessage(message);
      },
      close: () => port2.close(),
      on: (event, listener) => port2.on(event, listener),
    };
    const transport = await connectMessagePort(port, { rank: 1 });
    const large = new Uint8Array(20_000).fill(2);
    await transport.send(letter(1, 0, large));
    await transport.send(letter(1, 1, large));
    expect((await take(transport, 2)).map(({ bytes }) => bytes)).toEqual([large, large]);
    expect(refusals).toBe(1);
    await transport.close();
  });
});
