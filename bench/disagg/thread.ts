import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type Role, runThread } from "./crew.js";

await runThread(workerData as Role, parentPort as MessagePort);
