import { parentPort, workerData } from "node:worker_threads";
import { connectMessagePort } from "../../src/transport/message-port.js";
import { ANSWERER, answerAll, WANTS_ANSWER } from "./line.js";

if (parentPort === null) throw new Error("Expected to run in a worker thread.");
const port = parentPort;

if (workerData === "bare") {
  // No transport: the first byte tells what wants an answer, and there is no back-pressure.
  port.on("message", (bytes: Uint8Array) => {
    if (bytes[0] === WANTS_ANSWER) port.postMessage(bytes.slice(0, 16));
  });
} else {
  await answerAll(await connectMessagePort(port, { rank: ANSWERER }));
}
