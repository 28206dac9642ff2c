import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import { createRouter, type Router, type RouterOptions } from "../../src/gateway/router.js";
import { serveGateway } from "../../src/node/serve-gateway.js";
import { undiciUpstream } from "../../src/node/undici-upstream.js";
import { Prng } from "../../src/sim/prng.js";
import { scaled } from "../support/scale.js";
import { fetchClient, httpClient, type Send } from "./clients.js";
import { SoakEngine } from "./engines.js";
import { CountedClock, calamities, Soak } from "./soak.js";

const CONCURRENCY = 200;
const SEED = 8;
/** From a quarter of the requests to the end. It grows by 1 MiB, whatever their number; 300 bytes a request would be too much. */
const HEAP_GROWTH_BYTES_MAX = 4 * 2 ** 20;
/** Rounds of requests by which every engine has to be of use again. */
const RECOVERY_ROUNDS_MAX = 500;
const RATES = { busy: 0.02, overloaded: 0.01, broken: 0.02, refuse: 0.01, slow: 0.01, die: 0.01, truncate: 0.01 };

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const failures: unknown[] = [];
const fail = (error: unknown) => void failures.push(error);
const engines: SoakEngine[] = [];

afterEach(async () => {
  process.off("unhandledRejection", fail).off("uncaughtException", fail);
  await Promise.all(engines.splice(0).map((engine) => engine.kill()));
});

/** What the heap holds when nothing is under way. */
function heapBytes(): number {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;

async function begin(): Promise<RouterOptions & { readonly clock: CountedClock }> {
  process.on("unhandledRejection", fail).on("uncaughtException", fail);
  failures.length = 0;
  const chance = new Prng(SEED);
  const common = { rates: RATES, blockSize: 16, outputTokens: 8, speedupRatio: 100 };
  const started = [1, 2, 3, 4].map((seed) => SoakEngine.start({ ...common, seed, name: `e${seed}` }));
  engines.push(...(await Promise.all(started)));
  return {
    workers: engines.map(({ url }, index) => ({ id: `e${index + 1}`, url, maxInFlight: 45 })),
    maxQueued: CONCURRENCY,
    firstByteTimeoutMs: 5_000,
    stallTimeoutMs: 5_000,
    queueTimeoutMs: 20_000,
    breaker: { openMs: 1_000 },
    clock: new CountedClock(),
    random: () => chance.random(),
  };
}

/** Plays everything, prints one line that sums it up, and looks at what is left of it. */
async function soak(router: Router, send: Send, requests: number, records: () => number): Promise<void> {
  const began = performance.now();
  const chance = new Prng(SEED);
  const script = calamities(engines, requests, chance.below(Math.ceil(requests / 100)));
  const play = new Soak({ send, seed: SEED, requests, concurrency: CONCURRENCY, script });
  await play.playUpTo(requests / 4);
  await expect.poll(() => router.stats().inFlight).toBe(0);
  const early = heapBytes();
  await play.playUpTo(requests);
  const seconds = (performance.now() - began) / 1000;
  await expect.poll(() => router.stats().inFlight).toBe(0);
  const late = heapBytes();

  const stats = router.stats();
  const total = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((sum, one) => sum + one, 0);
  console.log(
    `${requests} requests in ${seconds.toFixed(1)} s: ${JSON.stringify(play.counts)}, ` +
      `retries ${JSON.stringify(stats.retries)}, queue ${JSON.stringify(stats.queue)}, ` +
      `openings ${stats.workers.map(({ breaker }) => breaker?.openings)}, ` +
      `heap ${(early / 2 ** 20).toFixed(1)} to ${(late / 2 ** 20).toFixed(1)} MiB`,
  );
  expect(play.unclear).toEqual([]);
  expect(play.wrongParts).toEqual([]);
  expect(total(play.counts)).toBe(requests);
  expect(play.counts["whole"]).toBeGreaterThan(requests * 0.8);
  expect(failures).toEqual([]);
  expect(late - early).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
  expect(stats.selection).toMatchObject({ bookings: 0, expiredBookings: 0 });
  expect(stats.queue.waiting).toBe(0);
  for (const worker of stats.workers) {
    expect(worker).toMatchObject({ inFlight: 0, activePrefillTokens: 0, activeBlocks: 0 });
  }
  expect(stats.requests.reduce((sum, { count }) => sum + count, 0)).toBe(records());
  expect(records()).toBeLessThanOrEqual(requests); // who goes before the request is whole has asked nothing
  expect(total(stats.retries)).toBeGreaterThan(0);
  await recovered(router, send);
}

/** Waits until every breaker is closed and every worker has been of use again. */
async function recovered(router: Router, send: Send): Promise<void> {
  const before = new Map(router.stats().workers.map(({ id, outcomes }) => [id, outcomes.completed]));
  const hasRecovered = () =>
    router
      .stats()
      .workers.every(
        ({ id, breaker, outcomes }) => breaker?.state === "closed" && outcomes.completed > (before.get(id) ?? 0),
      );
  for (let round = 0; !hasRecovered(); round++) {
    if (round === RECOVERY_ROUNDS_MAX)
      throw new Error(`Expected all engines to be of use again: ${JSON.stringify(router.stats().workers)}`);
    const play = new Soak({ send, seed: SEED + 1 + round, requests: 20, concurrency: 20, script: new Map() });
    await play.playUpTo(20);
  }
}

// 5,000 in the normal suite; KVROUTE_TEST_SCALE=4 makes it the 20,000 of a long run, about a minute.
test("a day in the life of a server: every client is answered or told, and nothing is left of it", {
  timeout: 1_200_000,
}, async () => {
  const before = sockets();
  const options = await begin();
  const upstream = undiciUpstream();
  let records = 0;
  const router = createRouter({ ...options, upstream, onRequest: () => records++ });
  const server = await serveGateway({ gateway: router });
  const client = httpClient(server.port, CONCURRENCY);
  await soak(router, client.send, scaled(5_000), () => records);
  client.close();
  await expect.poll(() => [server.connections, server.inFlight]).toEqual([0, 0]);
  await server.close();
  await router.close();
  await upstream.close();
  expect(options.clock.pending).toBe(0);
  await expect.poll(sockets).toBe(before);
});

test("so it is in one program, over fetch", { timeout: 1_200_000 }, async () => {
  const options = await begin();
  let records = 0;
  const router = createRouter({ ...options, onRequest: () => records++ });
  await soak(router, fetchClient(router), scaled(2_000), () => records);
  await router.close();
  expect(options.clock.pending).toBe(0);
});
