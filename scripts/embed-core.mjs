import { readFileSync } from "node:fs";

const QUERY = "core.wasm?base64";

/** Embeds a compiled core as base64 where a module imports `core.wasm?base64`. Serves rollup and vitest alike. */
export const embedCore = (file) => ({
  name: "embed-core",
  enforce: "pre",
  resolveId: (source) => (source.endsWith(QUERY) ? `\0${QUERY}` : null),
  load: (id) =>
    id === `\0${QUERY}` ? `export default ${JSON.stringify(readFileSync(file).toString("base64"))};` : null,
});
