// Prefill in one thread, decode in another, and the answer streams into this one.
//
//     npm run example disagg-worker-threads
//
// The "model" answers a text with the same text backwards. What matters is who does what, and where.

import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import {
  connectMessagePort,
  DecodeWorker,
  DisaggRouter,
  EOS_TOKEN,
  messagePortPipe,
  PrefillWorker,
  TransportHub,
} from "kvroute/disagg";

const ROUTER = 0;
const PREFILL = 1;
const DECODE = 2;

if (isMainThread) await main();
else await work(workerData as number);

/** Starts the two threads, and asks for two answers at once. */
async function main(): Promise<void> {
  const hub = new TransportHub();
  const threads = [PREFILL, DECODE].map((rank) => new Worker(new URL(import.meta.url), { workerData: rank }));
  for (const thread of threads) hub.attach(messagePortPipe(thread));

  const transport = await hub.connect(ROUTER);
  await new Promise<void>((resolve) => {
    const look = () => [PREFILL, DECODE].every((rank) => transport.ranks.includes(rank)) && resolve();
    transport.onPeerJoined(look);
    look();
  });

  const router = new DisaggRouter({ transport, prefillWorkers: [PREFILL], decodeWorkers: [DECODE] });
  const second = router.collect({ tokens: tokensOf("!yltnerrucnoc"), maxNewTokens: 100 });

  process.stdout.write("stressed backwards is ");
  for await (const token of router.route({ tokens: tokensOf("stressed"), maxNewTokens: 100, session: "first" })) {
    process.stdout.write(textOf(token));
  }
  console.log(`\nand another answer came ${(await second).map(textOf).join("")}`);

  const { complete, inFlight } = router.stats();
  console.log(`${complete} requests complete, ${inFlight} in flight`);
  await router.close();
  await Promise.all(threads.map((thread) => thread.terminate()));
}

/** What a worker thread does, by its rank. */
async function work(rank: number): Promise<void> {
  if (parentPort === null) throw new Error("Expected to run in a worker thread.");
  const transport = await connectMessagePort(parentPort, { rank });
  const worker =
    rank === PREFILL ? new PrefillWorker({ transport, prefill }) : new DecodeWorker({ transport, decodeStep });
  await worker.run();
}

/** The "KV cache" of a prompt: its length, where decoding starts by convention, and its tokens. */
function prefill(tokens: BigInt64Array): Uint8Array<ArrayBuffer> {
  const kv = new Uint8Array(4 + tokens.byteLength);
  new DataView(kv.buffer).setUint32(0, tokens.length, true);
  kv.set(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength), 4);
  return kv;
}

/** The token before the one of the last step, or the end. */
function decodeStep(kv: Uint8Array, _lastToken: bigint, position: number): bigint {
  const view = new DataView(kv.buffer, kv.byteOffset, kv.byteLength);
  const at = 2 * view.getUint32(0, true) - position - 1;
  return at < 0 ? EOS_TOKEN : view.getBigInt64(4 + 8 * at, true);
}

function tokensOf(text: string): BigInt64Array {
  return BigInt64Array.from(text, (character) => BigInt(character.charCodeAt(0)));
}

function textOf(token: bigint): string {
  return String.fromCharCode(Number(token));
}
