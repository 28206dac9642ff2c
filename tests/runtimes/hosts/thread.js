// Node: the suite in a worker thread.
import { isMainThread, parentPort, Worker } from "node:worker_threads";

if (isMainThread) {
  const thread = new Worker(new URL(import.meta.url));
  thread.on("message", (text) => console.log(text));
  thread.on("error", (error) => {
    console.error(error);
    process.exitCode = 1;
  });
} else {
  const { modules } = await import("./modules.js");
  const { printed, runPortable } = await import("./portable.js");
  parentPort.postMessage(printed(await runPortable(modules)));
}
