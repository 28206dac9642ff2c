import { type MessagePort, Worker } from "node:worker_threads";
import {
  connectMessagePort,
  DecodeWorker,
  DisaggRouter,
  MemoryNetwork,
  messagePortPipe,
  PrefillWorker,
  type Transport,
  TransportHub,
} from "kvroute/disagg";

const ROUTER = 0;
const PREFILL = 1;
const DECODE = 2;

export type Role = "prefill" | "decode" | "echo";

/** Gives answers: `tokens` each to `requests` at once, token by token. Returns the sum of all of them. */
export interface Answerer {
  answer(requests: number, tokens: number): Promise<bigint>;
  close(): Promise<unknown>;
}

/** Runs a worker whose functions cost next to nothing: what is measured is the way. */
export async function runWorker(role: Role, transport: Transport): Promise<void> {
  const worker =
    role === "prefill"
      ? new PrefillWorker({ transport, prefill: () => new Uint8Array(16), concurrency: 256 })
      : new DecodeWorker({ transport, decodeStep: (_kv, _last, position) => BigInt(position), concurrency: 256 });
  await worker.run();
}

/** What a thread of this benchmark does: its port is either a transport's, or it is echoed. */
export async function runThread(role: Role, port: MessagePort): Promise<void> {
  if (role !== "echo") return runWorker(role, await connectMessagePort(port, { rank: rankOf(role) }));
  port.on("message", (message: Uint8Array | number) => {
    if (typeof message !== "number") port.postMessage(message);
    else for (let at = 0; at < message; at++) port.postMessage(new Uint8Array(16));
  });
}

const rankOf = (role: Role) => (role === "prefill" ? PREFILL : DECODE);

export function startThread(role: Role): Worker {
  return new Worker(new URL("./thread.js", import.meta.url), { workerData: role });
}

/** Everybody in this thread. */
export async function inMemory(): Promise<Answerer> {
  const network = new MemoryNetwork();
  const roles = ["prefill", "decode"] as const;
  for (const role of roles) void runWorker(role, network.connect(rankOf(role)));
  return answerer(network.connect(ROUTER), async () => undefined);
}

/** The two workers in threads of their own. */
export async function overThreads(): Promise<Answerer> {
  const hub = new TransportHub();
  const threads = (["prefill", "decode"] as const).map(startThread);
  for (const thread of threads) hub.attach(messagePortPipe(thread));
  const transport = await hub.connect(ROUTER);
  await new Promise<void>((resolve) => {
    const look = () => transport.ranks.length === threads.length + 1 && resolve();
    transport.onPeerJoined(look);
    look();
  });
  return answerer(transport, () => Promise.all(threads.map((thread) => thread.terminate())));
}

function answerer(transport: Transport, close: () => Promise<unknown>): Answerer {
  const router = new DisaggRouter({ transport, prefillWorkers: [PREFILL], decodeWorkers: [DECODE] });
  const prompt = new BigInt64Array(16);
  const ask = async (maxNewTokens: number) => {
    let sum = 0n;
    for await (const token of router.route({ tokens: prompt, maxNewTokens })) sum += token;
    return sum;
  };
  return { answer: (requests, tokens) => total(requests, () => ask(tokens)), close };
}

/** The least there is: an asynchronous generator that yields the tokens, with nobody else. */
export async function generator(): Promise<Answerer> {
  async function* tokensUpTo(tokens: number) {
    for (let position = 0; position < tokens; position++) yield BigInt(position);
  }
  const ask = async (tokens: number) => {
    let sum = 0n;
    for await (const token of tokensUpTo(tokens)) sum += token;
    return sum;
  };
  return { answer: (requests, tokens) => total(requests, () => ask(tokens)), close: async () => undefined };
}

async function total(requests: number, ask: () => Promise<bigint>): Promise<bigint> {
  const sums = await Promise.all(Array.from({ length: requests }, ask));
  return sums.reduce((sum, one) => sum + one, 0n);
}
