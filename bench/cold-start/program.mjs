// A fresh process: an empty module is imported, or kvroute, which then decides a first request. Prints milliseconds.

const what = globalThis.Deno?.args[0] ?? globalThis.process.argv[2];

/** The first decision: a service with two workers, and a prompt of 1,024 tokens. */
function decide({ SelectionService }) {
  const service = new SelectionService();
  for (const workerId of ["a", "b"]) service.workers.add({ workerId, endpoint: `http://${workerId}`, blockSize: 16 });
  return service.select({ tokenIds: Uint32Array.from({ length: 1_024 }, (_, at) => at) }).worker;
}

const begun = performance.now();
const module = await import(what === "empty" ? "./empty.mjs" : "kvroute");
const imported = performance.now();
if (what !== "empty") decide(module);
console.log(JSON.stringify({ importMs: imported - begun, decideMs: performance.now() - imported }));
