// A process: it connects over a WebSocket, and tells its stats over the channel of its parent when it is asked.

import { connectWebSocket } from "kvroute/disagg";
import { WebSocket } from "ws";
import { makeWorker } from "./threads-roles.mjs";

const [role, rank, url] = process.argv.slice(2);
const worker = makeWorker(role, await connectWebSocket(url, { rank: Number(rank), WebSocket }));
process.on("message", () => process.send(worker.stats()));
await worker.run().catch((error) => {
  if (error.code !== "KVROUTE_TRANSPORT_BROKEN") throw error; // the hub was closed: the test is over
});
