import type { Plugin } from "vite";

/** Embeds a compiled core as base64 where a module imports `core.wasm?base64`. Serves rollup and vitest alike. */
export function embedCore(file: string): Plugin;
