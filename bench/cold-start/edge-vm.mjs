// A fresh edge runtime: what stands in a bundle is evaluated, and a first request asks for a decision. Prints milliseconds.

import { readFileSync } from "node:fs";
import { EdgeVM } from "@edge-runtime/vm";

const [, , bundle, core] = process.argv;
const code = readFileSync(bundle, "utf8");
const module = new WebAssembly.Module(readFileSync(core)); // the platform has compiled it at deployment
const vm = new EdgeVM({
  codeGeneration: { strings: false, wasm: false },
  extend: (context) => Object.assign(context, { __core: module }),
});

const begun = performance.now();
vm.evaluate(code);
const imported = performance.now();
await (await vm.dispatchFetch("http://edge/")).text();
console.log(JSON.stringify({ importMs: imported - begun, decideMs: performance.now() - imported }));
