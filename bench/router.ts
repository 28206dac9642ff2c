import { main, type Runner, type TimedSuite } from "./harness.js";
import { answerEvents, bodiesOf, drain, engineFetch, URL_OF_CHAT } from "./router/scene.js";

// What router.fetch costs beside fetch alone, before an engine in memory that costs nothing itself; and what its parts cost
// one by one. The parts do different work, so their checksums are only how often they did it.

const SIZES = { "1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000 } as const;
type Size = keyof typeof SIZES;
const OPERATIONS: Readonly<Record<Size, number>> = { "1 KB": 200, "100 KB": 50, "1 MB": 10 };
const WORKERS = ["a", "b", "c", "d"].map((id) => ({ id, url: `http://${id}` }));

/** Runs a call once for each of the bodies in turn, and adds up what the calls return. */
function runnerOf(size: Size, call: (index: number) => number | Promise<number>): Runner {
  const operations = OPERATIONS[size];
  return {
    operations,
    async run() {
      let sum = 0;
      for (let index = 0; index < operations; index++) sum += await call(index);
      return sum;
    },
    digest: () => 0,
    finish: () => 0,
  };
}

async function callsOf(size: Size, isRouted: boolean): Promise<Runner> {
  const { createRouter } = await import("../src/gateway/router.js");
  const bodies = bodiesOf(SIZES[size]);
  const headers = { "content-type": "application/json", authorization: "Bearer key" };
  const send = isRouted ? createRouter({ workers: WORKERS, fetch: engineFetch }).fetch : engineFetch;
  return runnerOf(size, async (index) => {
    const body = bodies[index % bodies.length] as string;
    return drain(await send(URL_OF_CHAT, { method: "POST", headers, body }));
  });
}

const calls = (size: Size): TimedSuite => ({
  kind: "time",
  title: `router.fetch: a call with a body of ${size}`,
  operation: "a streamed answer of 66 events, read to its end; the engine is a function",
  rounds: 21,
  contenders: {
    "router.fetch": () => callsOf(size, true),
    "fetch alone": () => callsOf(size, false),
  },
});

async function parsing(size: Size): Promise<Runner> {
  const { parseText } = await import("../src/gateway/prompt/body.js");
  const bodies = bodiesOf(SIZES[size]);
  const encoder = new TextEncoder();
  return runnerOf(size, (index) => {
    const body = bodies[index % bodies.length] as string;
    encoder.encode(body);
    return Math.sign(Object.keys(parseText(body)).length);
  });
}

/** The keys of the bodies, each as often as it is asked for. */
async function keysOf(size: Size) {
  const { parseBody } = await import("../src/gateway/prompt/body.js");
  const { promptKeyOf } = await import("../src/gateway/prompt.js");
  const bodies = bodiesOf(SIZES[size]).map((body) => new TextEncoder().encode(body));
  const parsed = bodies.map(parseBody);
  return (index: number) => {
    const at = index % bodies.length;
    const options = { blockBytes: 256, tenant: "t", parsed: parsed[at] };
    return promptKeyOf("/v1/chat/completions", bodies[at] as Uint8Array, options);
  };
}

async function hashing(size: Size): Promise<Runner> {
  const keyOf = await keysOf(size);
  return runnerOf(size, (index) => Math.sign(keyOf(index).promptBytes));
}

async function choosing(size: Size): Promise<Runner> {
  const { SelectionService } = await import("../src/selection/service.js");
  const keyOf = await keysOf(size);
  const keys = Array.from({ length: 16 }, (_, index) => keyOf(index));
  let id = 0;
  const service = new SelectionService({ newId: () => `${++id}` });
  for (const worker of WORKERS) service.workers.add({ workerId: worker.id, blockSize: 64 });
  return runnerOf(size, (index) => {
    const { sequenceHashes, promptBytes, fingerprint } = keys[index % keys.length] as (typeof keys)[number];
    const request = { sequenceHashes, islTokens: promptBytes / 4 + 1, session: fingerprint, tenant: "t" };
    const { selectionId } = service.selectAndReserve({ ...request, islTokens: Math.ceil(request.islTokens) });
    service.prefillComplete(selectionId);
    service.reportCachedTokens(selectionId, 0);
    return service.free(selectionId) ? 1 : 0;
  });
}

async function streaming(size: Size): Promise<Runner> {
  const { readerOf } = await import("../src/gateway/stream.js");
  const headers = new Headers({ "content-type": "text/event-stream" });
  return runnerOf(size, () => {
    const reader = readerOf("chat", 200, headers);
    for (const event of answerEvents) reader.push(event);
    return reader.end().isWhole ? 1 : 0;
  });
}

const parts = (size: Size): TimedSuite => ({
  kind: "time",
  title: `router.fetch: its parts, a body of ${size}`,
  operation: "once for a request: the body read as JSON; its prompt hashed; a worker chosen and booked; 66 events read",
  rounds: 21,
  contenders: {
    parsing: () => parsing(size),
    hashing: () => hashing(size),
    choosing: () => choosing(size),
    streaming: () => streaming(size),
  },
});

const sizes = Object.keys(SIZES) as Size[];
await main(import.meta.url, [...sizes.map(calls), ...sizes.map(parts)]);
