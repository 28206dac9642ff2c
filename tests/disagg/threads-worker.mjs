// A worker thread: its rank's end is `parentPort`; over `control` it tells its stats when it is asked.

import { parentPort, workerData } from "node:worker_threads";
import { connectMessagePort } from "kvroute/disagg";
import { makeWorker } from "./threads-roles.mjs";

const { role, rank, control } = workerData;
const worker = makeWorker(role, await connectMessagePort(parentPort, { rank }));
control.on("message", () => control.postMessage(worker.stats()));
await worker.run().catch((error) => {
  if (error.code !== "KVROUTE_TRANSPORT_BROKEN") throw error; // the hub was closed: the test is over
});
