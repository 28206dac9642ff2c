import { TransportHub } from "../../src/transport/hub.js";
import { MemoryNetwork } from "../../src/transport/memory.js";
import type { Transport } from "../../src/transport/types.js";

/** The rank of who asks, and of who answers. */
export const ASKER = 0;
export const ANSWERER = 1;

/** The tag of what wants an answer, and of what is swallowed. */
export const WANTS_ANSWER = 1;
export const WANTS_NONE = 0;

/** A way to one who swallows some messages and answers others, and back. */
export interface Line {
  send(bytes: Uint8Array<ArrayBuffer>, wantsAnswer: boolean): Promise<void> | void;
  /** Waits for one answer, and tells its bytes. */
  answer(): Promise<number>;
}

/** Makes the asker's side of a transport. */
export function lineOf(transport: Transport): Line {
  const arrivals = transport.receive()[Symbol.asyncIterator]();
  return {
    send: (bytes, wantsAnswer) => {
      const tag = wantsAnswer ? WANTS_ANSWER : WANTS_NONE;
      return transport.send({ destination: ANSWERER, tag, router: ASKER, requestId: 1n, sequence: 0, bytes });
    },
    answer: async () => (await arrivals.next()).value?.bytes.length ?? 0,
  };
}

/** Swallows and answers, until the transport ends. The answer to large bytes is short. */
export async function answerAll(transport: Transport): Promise<void> {
  for await (const { source, tag, router, requestId, bytes } of transport.receive()) {
    if (tag !== WANTS_ANSWER) continue;
    await transport.send({ destination: source, tag, router, requestId, sequence: 0, bytes: bytes.slice(0, 16) });
  }
}

export async function memoryLine(): Promise<Line> {
  const network = new MemoryNetwork();
  void answerAll(network.connect(ANSWERER));
  return lineOf(network.connect(ASKER));
}

export async function hubLine(): Promise<Line> {
  const hub = new TransportHub();
  void answerAll(await hub.connect(ANSWERER));
  return lineOf(await hub.connect(ASKER));
}
