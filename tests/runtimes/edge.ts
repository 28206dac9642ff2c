import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EdgeContext } from "@edge-runtime/vm/dist/edge-vm.js";
import type { Plugin } from "rollup";

/** The global under which the platform's module is handed over. */
export const HANDED_OVER = "__core";

/** What Vercel's bundler does with `?module`: the import becomes a module that the platform has compiled. */
export const platformModule: Plugin = {
  name: "platform-module",
  resolveId: (source) => (source.endsWith("core.wasm?module") ? "\0core" : null),
  load: (id) => (id === "\0core" ? `export default globalThis.${HANDED_OVER};` : null),
};

/** Compiles the packed core in this realm, for the one of an edge runtime. */
export function handOver(project: string): (context: EdgeContext) => EdgeContext {
  const core = new WebAssembly.Module(readFileSync(join(project, "node_modules/kvroute/dist/core/core.wasm")));
  return (context) => Object.assign(context, { [HANDED_OVER]: core });
}
