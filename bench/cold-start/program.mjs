// A fresh process: an empty module is imported, or kvroute, which then decides a first request. Prints milliseconds.

import { decide } from "./decide.mjs";

const what = globalThis.Deno?.args[0] ?? globalThis.process.argv[2];

const begun = performance.now();
const module = await import(what === "empty" ? "./empty.mjs" : "kvroute");
const imported = performance.now();
if (what !== "empty") decide(module);
console.log(JSON.stringify({ importMs: imported - begun, decideMs: performance.now() - imported }));
