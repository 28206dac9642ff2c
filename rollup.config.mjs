import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { embedCore } from "./scripts/embed-core.mjs";

// tsc has compiled src/ to build/js; rollup only bundles. `#core` stays an import, so that the runtime's own conditions
// choose the seam (see "imports" in package.json).

const core = embedCore("build/core.wasm");
const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const external = [/^node:/, "#core", ...Object.keys(dependencies).map((name) => new RegExp(`^${name}(/|$)`))];

const copyCore = {
  name: "copy-core",
  writeBundle() {
    mkdirSync("dist/core", { recursive: true });
    copyFileSync("build/core.wasm", "dist/core/core.wasm");
    rmSync("dist/types", { recursive: true, force: true });
    cpSync("build/types", "dist/types", { recursive: true });
  },
};

// Chunks are named after what they hold: those of an earlier build must not be packed.
const sweep = {
  name: "sweep",
  writeBundle({ dir }, bundle) {
    const kept = (file) => file in bundle || file.startsWith("kvroute.browser.");
    for (const file of readdirSync(dir)) if (/\.js(\.map)?$/.test(file) && !kept(file)) rmSync(`${dir}/${file}`);
  },
};

const inlineSeam = {
  name: "inline-seam",
  resolveId: (source) =>
    source === "#core" ? new URL("build/js/core/module.inline.js", import.meta.url).pathname : null,
};

/** Lists the modules that come with one, itself among them. */
function reachedFrom(file, getModuleInfo, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const next of getModuleInfo(file)?.importedIds ?? []) reachedFrom(next, getModuleInfo, found);
  return found;
}

const compiled = (file) => new URL(`build/js/${file}`, import.meta.url).pathname;
let ofMain; // once the modules are known

/**
 * Puts what the main entry imports into one file, but for what the disaggregated router shares: for Node a file more takes
 * longer than what is in it.
 */
function mainChunk(id, { getModuleInfo }) {
  if (ofMain === undefined) {
    const shared = reachedFrom(compiled("disagg/index.js"), getModuleInfo);
    ofMain = new Set([...reachedFrom(compiled("index.js"), getModuleInfo)].filter((file) => !shared.has(file)));
  }
  return ofMain.has(id) ? "main" : null;
}

/** @type {import("rollup").RollupOptions[]} */
export default [
  {
    input: {
      index: "build/js/index.js",
      disagg: "build/js/disagg/index.js",
      events: "build/js/selection/events.js",
      http: "build/js/http/index.js",
      node: "build/js/node/index.js",
      testing: "build/js/testing/index.js",
      "testing-node": "build/js/node/testing.js",
      cli: "build/js/cli/main.js",
    },
    external,
    output: {
      dir: "dist",
      format: "es",
      chunkFileNames: "[name].js",
      manualChunks: mainChunk,
      onlyExplicitManualChunks: true,
      sourcemap: true,
    },
    plugins: [copyCore, sweep],
  },
  {
    input: {
      "module.inline": "build/js/core/module.inline.js",
      "module.workerd": "build/js/core/module.workerd.js",
      "module.edge-light": "build/js/core/module.edge-light.js",
    },
    external: ["@assemblyscript/loader", /core\.wasm(\?module)?$/],
    output: { dir: "dist/core", format: "es" },
    plugins: [core, sweep],
  },
  {
    input: "build/js/index.js",
    output: { file: "dist/kvroute.browser.js", format: "es", sourcemap: true, inlineDynamicImports: true },
    plugins: [inlineSeam, core, nodeResolve()],
  },
];
