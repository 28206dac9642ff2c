// A Web Worker of a page that Vite has built.
import { modules } from "./modules.js";
import { printed, runPortable } from "./portable.js";

runPortable(modules).then((report) => postMessage(printed(report)));
