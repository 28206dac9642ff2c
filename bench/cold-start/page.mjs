// A page: as program.mjs, of the self-contained file.

import { decide } from "./decide.mjs";

const what = location.search.slice(1);

const begun = performance.now();
const module = await import(what === "empty" ? "./empty.mjs" : "./node_modules/kvroute/dist/kvroute.browser.js");
const imported = performance.now();
if (what !== "empty") decide(module);
document.title = JSON.stringify({ importMs: imported - begun, decideMs: performance.now() - imported });
