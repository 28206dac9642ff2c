import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { connectWebSocket, DisaggRouter, TransportHub, type WorkerStats } from "kvroute/disagg";
import { serveTransport, type TransportServer } from "kvroute/node";
import { afterEach, expect, test } from "vitest";
import { WebSocket } from "ws";
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
  untilMet,
} from "./threads-crowd.js";

const script = fileURLToPath(new URL("./sockets-worker.mjs", import.meta.url));
const children: ChildProcess[] = [];
const servers: TransportServer[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) await server.close();
});

/** Starts a worker in a process of its own, on the built package. */
function startProcess(url: string, role: string, rank: number): Remote {
  const child = fork(script, [role, String(rank), url], { execArgv: [] });
  children.push(child);
  return {
    rank,
    kill: () => child.kill("SIGKILL"),
    stats: () =>
      new Promise<WorkerStats>((resolve) => {
        child.once("message", (stats) => resolve(stats as WorkerStats));
        child.send("stats");
      }),
  };
}

/** Two routers and four workers, all of whom reach each other over WebSockets on loopback alone. */
async function startAll() {
  const hub = new TransportHub();
  const server = await serveTransport({ hub });
  servers.push(server);
  const [prefill, decode] = [PREFILL.slice(0, 2), DECODE.slice(0, 2)];
  const remotes = [
    ...prefill.map((rank) => startProcess(server.url, "prefill", rank)),
    ...decode.map((rank) => startProcess(server.url, "decode", rank)),
  ];
  await until(() => hub.ranks.length === remotes.length, "all processes have connected");
  const ends = await Promise.all(ROUTERS.map((rank) => connectWebSocket(server.url, { rank, WebSocket })));
  await untilMet(ends, remotes.length + ROUTERS.length);
  const routers = ends.map(
    (transport) => new DisaggRouter({ transport, prefillWorkers: prefill, decodeWorkers: decode }),
  );
  return { hub, remotes, routers };
}

test("many requests from two routers over processes and WebSockets get their own tokens", async () => {
  const { hub, remotes, routers } = await startAll();
  expectAllRight(await ask(routers, scaled(1_000)));
  await expectRest(routers, remotes);
  await hub.close();
});

test("SIGKILL in the middle: every request has its answer, or an error that says how far it came", async () => {
  const { hub, remotes, routers } = await startAll();
  const doomed = remotes.find(({ rank }) => rank === DECODE[0]) as Remote;
  const held = await holdAnswers(routers, 2);
  const ended = await ask(routers, 400, (tokens) => {
    if (tokens === 100) doomed.kill();
  });
  expectRightOrTold(ended);
  const lost = { code: "KVROUTE_DISAGG_WORKER_LOST", tokens: 1 };
  expect(await held.failures(ROUTERS.length)).toMatchObject(ROUTERS.map(() => lost)); // one of each router was there
  await held.leave();
  expect(routers.map((router) => router.stats().workers.length)).toEqual([3, 3]);
  await expectRest(
    routers,
    remotes.filter((remote) => remote !== doomed),
  );
  await hub.close();
});
