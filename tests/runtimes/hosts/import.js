// Node, Deno and Bun: import.
import { modules } from "./modules.js";
import { printed, runPortable } from "./portable.js";

const report = await runPortable(modules);
console.log(printed(report));
