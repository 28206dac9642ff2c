// The seam for the edge runtimes of Vercel and Next.js: the bundler imports the core as a module.

import core from "./core.wasm?module";

/** Gives the core that the runtime has compiled. */
export function module(): WebAssembly.Module {
  return core;
}

/** Gives the core that the runtime has compiled. */
export async function moduleAsync(): Promise<WebAssembly.Module> {
  return core;
}

/** Makes an instance. */
export function instantiate(module: WebAssembly.Module): WebAssembly.Instance {
  return new WebAssembly.Instance(module);
}
