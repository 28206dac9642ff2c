import { copyFileSync, cpSync, mkdirSync } from "node:fs";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { embedCore } from "./scripts/embed-core.mjs";

// tsc has compiled src/ to build/js; rollup only bundles. `#core` stays an import, so that the runtime's own conditions
// choose the seam (see "imports" in package.json).

const core = embedCore("build/core.wasm");
const external = [
  /^node:/,
  "#core",
  "@assemblyscript/loader",
  "@hono/node-server",
  "@msgpack/msgpack",
  "cli-progress",
  "cli-table3",
  "commander",
  "ws",
];

const copyCore = {
  name: "copy-core",
  writeBundle() {
    mkdirSync("dist/core", { recursive: true });
    copyFileSync("build/core.wasm", "dist/core/core.wasm");
    cpSync("build/types", "dist/types", { recursive: true });
  },
};

const inlineSeam = {
  name: "inline-seam",
  resolveId: (source) =>
    source === "#core" ? new URL("build/js/core/module.inline.js", import.meta.url).pathname : null,
};

/** @type {import("rollup").RollupOptions[]} */
export default [
  {
    input: {
      index: "build/js/index.js",
      disagg: "build/js/disagg/index.js",
      node: "build/js/node/index.js",
      testing: "build/js/testing/index.js",
      "testing-node": "build/js/node/testing.js",
      cli: "build/js/cli/main.js",
    },
    external,
    output: { dir: "dist", format: "es", chunkFileNames: "[name].js", sourcemap: true },
    plugins: [copyCore],
  },
  {
    input: {
      "module.inline": "build/js/core/module.inline.js",
      "module.workerd": "build/js/core/module.workerd.js",
      "module.edge-light": "build/js/core/module.edge-light.js",
    },
    external: ["@assemblyscript/loader", /core\.wasm(\?module)?$/],
    output: { dir: "dist/core", format: "es" },
    plugins: [core],
  },
  {
    input: "build/js/index.js",
    output: { file: "dist/kvroute.browser.js", format: "es", sourcemap: true },
    plugins: [inlineSeam, core, nodeResolve()],
  },
];
