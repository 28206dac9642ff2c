// The seam for Node, browsers, Deno and Bun: the core travels as base64 and is compiled when it is first needed.

import { instantiateSync } from "@assemblyscript/loader";
import base64 from "../../build/core.wasm?base64";

let compiled: WebAssembly.Module | undefined;

function bytes(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Compiles the core, once. */
export function module(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(bytes());
  return compiled;
}

/** Compiles the core, once, without holding the thread up. */
export async function moduleAsync(): Promise<WebAssembly.Module> {
  compiled ??= await WebAssembly.compile(bytes());
  return compiled;
}

/** Makes an instance. A caller's own module may be of another realm, which the loader does not recognise. */
export function instantiate(module: WebAssembly.Module): WebAssembly.Instance {
  return module === compiled ? instantiateSync(module).instance : new WebAssembly.Instance(module);
}
