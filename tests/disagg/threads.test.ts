import { MessageChannel, Worker } from "node:worker_threads";
import { DisaggRouter, messagePortPipe, TransportHub, type WorkerStats } from "kvroute/disagg";
import { afterEach, expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import { until } from "../support/until.js";
import {
  ask,
  DECODE,
  expectAllRight,
  expectRest,
  expectRightOrTold,
  holdAnswers,
  PREFILL,
  type Remote,
  ROUTERS,
} from "./threads-crowd.js";

const threads: Worker[] = [];
afterEach(async () => {
  await Promise.all(threads.splice(0).map((thread) => thread.terminate()));
});

/** Starts a worker thread on the built package, and attaches it to a hub. */
function startThread(hub: TransportHub, role: string, rank: number): Remote {
  const { port1: control, port2 } = new MessageChannel();
  const workerData = { role, rank, control: port2 };
  const thread = new Worker(new URL("./threads-worker.mjs", import.meta.url), { workerData, transferList: [port2] });
  threads.push(thread);
  hub.attach(messagePortPipe(thread));
  control.unref();
  return {
    rank,
    kill: () => thread.terminate(),
    stats: () =>
      new Promise<WorkerStats>((resolve) => {
        control.once("message", resolve);
        control.postMessage("stats");
      }),
  };
}

/** Two routers in this thread, and eight workers in threads of their own. */
async function startAll() {
  const hub = new TransportHub();
  const remotes = [
    ...PREFILL.map((rank) => startThread(hub, "prefill", rank)),
    ...DECODE.map((rank) => startThread(hub, "decode", rank)),
  ];
  await until(() => hub.ranks.length === remotes.length, "all threads have connected");
  const routers: DisaggRouter[] = [];
  for (const rank of ROUTERS) {
    const transport = await hub.connect(rank);
    routers.push(new DisaggRouter({ transport, prefillWorkers: PREFILL, decodeWorkers: DECODE }));
  }
  return { hub, remotes, routers };
}

test("1,000 requests from two routers over eight worker threads get their own tokens", async () => {
  const { hub, remotes, routers } = await startAll();
  const ended = await ask(routers, scaled(1_000));
  expectAllRight(ended);
  await expectRest(routers, remotes);
  await hub.close();
});

test("threads that are ended in the middle: every request has its answer, or an error that says how far it came", async () => {
  const { hub, remotes, routers } = await startAll();
  const doomed = remotes.filter(({ rank }) => rank === PREFILL[0] || rank === DECODE[0]);
  const held = await holdAnswers(routers, DECODE.length);
  const ended = await ask(routers, 400, (tokens) => {
    if (tokens === 100) for (const remote of doomed) remote.kill();
  });
  expectRightOrTold(ended);
  const lost = { code: "KVROUTE_DISAGG_WORKER_LOST", tokens: 1 };
  expect(await held.failures(ROUTERS.length)).toMatchObject(ROUTERS.map(() => lost)); // one of each router was there
  await until(() => routers.every((router) => router.stats().workers.length === 6), "both have lost two workers");
  await held.leave();
  const alive = remotes.filter((remote) => !doomed.includes(remote));
  await expectRest(routers, alive);
  await hub.close();
});
