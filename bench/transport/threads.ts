import { Worker } from "node:worker_threads";
import { TransportHub } from "../../src/transport/hub.js";
import { messagePortPipe } from "../../src/transport/message-port.js";
import { ANSWERER, ASKER, type Line, lineOf, WANTS_ANSWER, WANTS_NONE } from "./line.js";

function thread(kind: "bare" | "transport"): Worker {
  const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData: kind });
  worker.unref();
  return worker;
}

/** Posts and listens, with nothing in between: large buffers change hands, as they do below the transport. */
export async function bareLine(): Promise<Line> {
  const worker = thread("bare");
  const answers: number[] = [];
  let waiting: ((length: number) => void) | null = null;
  worker.on("message", (bytes: Uint8Array) => {
    if (waiting === null) answers.push(bytes.length);
    else waiting(bytes.length);
    waiting = null;
  });
  return {
    send: (bytes, wantsAnswer) => {
      bytes[0] = wantsAnswer ? WANTS_ANSWER : WANTS_NONE;
      worker.postMessage(bytes, bytes.length >= 16_384 ? [bytes.buffer] : []);
    },
    answer: () =>
      new Promise((resolve) => {
        const length = answers.shift();
        if (length === undefined) waiting = resolve;
        else resolve(length);
      }),
  };
}

export async function threadLine(): Promise<Line> {
  const hub = new TransportHub();
  const transport = await hub.connect(ASKER);
  const joined = new Promise<void>((resolve) => transport.onPeerJoined(() => resolve()));
  hub.attach(messagePortPipe(thread("transport")));
  await joined;
  if (!transport.ranks.includes(ANSWERER)) throw new Error(`Expected rank ${ANSWERER} to be there.`);
  return lineOf(transport);
}
