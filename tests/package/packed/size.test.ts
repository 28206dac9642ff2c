import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Rollup } from "vite";
import { expect, inject, test } from "vitest";

const KIB = 1024;
/** What the core may weigh, in bytes. */
const CORE_MAX = 16 * KIB;

const project = inject("project");
const readme = fileURLToPath(new URL("../../../README.md", import.meta.url));
const core = readFileSync(join(project, "node_modules/kvroute/dist/core/core.wasm"));

/**
 * What one imports, and what it may weigh, in KiB, minified and gzipped with all it needs but the base64 of the core. Of a
 * router that is what is there when the import has resolved: what only requests need comes with the first of them, as a
 * file of its own, and has a row of its own. Whoever bundles everything into one file has the sum.
 */
const IMPORTS = [
  ["`BlockPool` of `kvroute`", `export { BlockPool } from "kvroute";`, 5],
  ["`PrefixIndex` and `hashTokens`", `export { PrefixIndex, hashTokens } from "kvroute";`, 6],
  ["`SelectionService`", `export { SelectionService } from "kvroute";`, 19],
  ["`createRouter`", `export { createRouter } from "kvroute";`, 30],
  ["all of `kvroute`", `export * from "kvroute";`, 32],
  ["all of `kvroute/disagg`", `export * from "kvroute/disagg";`, 20],
  ["all of `kvroute/events`", `export * from "kvroute/events";`, 15],
  ["all of `kvroute/http`", `export * from "kvroute/http";`, 80],
  ["all of `kvroute/testing`", `export * from "kvroute/testing";`, 22],
] as const;

/** What the first request of a router may load, in KiB. */
const LATER_MAX = 18;

interface Weight {
  /** Bytes, gzipped, that are there when the import has resolved. */
  readonly first: number;
  /** Bytes of what is imported later, when it is wanted. */
  readonly later: number;
}

/** Bundles and minifies an import. */
async function weigh(code: string, name: string): Promise<Weight> {
  const input = join(project, `size-${name}.js`);
  writeFileSync(input, code);
  const seam = {
    name: "seam",
    enforce: "pre" as const,
    resolveId: (id: string) => (id === "#core" ? { id, external: true } : null),
  };
  const { output } = (await build({
    root: project,
    configFile: false,
    logLevel: "error",
    plugins: [seam],
    ssr: { noExternal: true },
    build: {
      ssr: true, // without the helper by which Vite's pages preload styles
      write: false,
      minify: true,
      target: "es2022",
      rollupOptions: { input, preserveEntrySignatures: "allow-extension" }, // all that is there at first is one file
    },
  })) as Rollup.RollupOutput;
  const chunks = output.filter((part) => part.type === "chunk");
  const first = new Set<string>();
  const enter = (file: string) => {
    const chunk = chunks.find(({ fileName }) => fileName === file);
    if (chunk === undefined || first.has(file)) return; // the seam is no chunk
    first.add(file);
    for (const imported of chunk.imports) enter(imported);
  };
  for (const { isEntry, fileName } of chunks) if (isEntry) enter(fileName);
  const weightOf = (isIn: (file: string) => boolean) => {
    const code = chunks.flatMap(({ fileName, code }) => (isIn(fileName) ? [code] : [])).join("");
    return code === "" ? 0 : gzipSync(code, { level: 9 }).length;
  };
  return { first: weightOf((file) => first.has(file)), later: weightOf((file) => !first.has(file)) };
}

const kib = (bytes: number) => (bytes / KIB).toFixed(1);

test("the core and each import keep within their budgets, and the README says what they weigh", async () => {
  const inline = JSON.stringify(join(project, "node_modules/kvroute/dist/core/module.inline.js"));
  const rows = [
    `| core.wasm | ${kib(core.length)}, not gzipped | 16 |`,
    `| its base64 in JavaScript, with the loader | ${kib((await weigh(`export * from ${inline};`, "core")).first)} | |`,
  ];
  const over: string[] = [];
  const note = (what: string, bytes: number, most: number) => {
    rows.push(`| ${what} | ${kib(bytes)} | ${most} |`);
    if (bytes > most * KIB) over.push(`${what}: ${kib(bytes)} KiB, at most ${most}`);
  };
  let later = 0;
  for (const [index, [what, code, most]] of IMPORTS.entries()) {
    const weight = await weigh(code, String(index));
    note(what, weight.first, most);
    later = Math.max(later, weight.later);
  }
  expect(later, "what requests need is a file of its own").toBeGreaterThan(0);
  note("what the first request of a router loads", later, LATER_MAX);
  expect(over).toEqual([]);
  expect(core.length).toBeLessThanOrEqual(CORE_MAX);
  const text = readFileSync(readme, "utf8");
  const table = ["| import | KiB | at most |", "|---|---:|---:|", ...rows, ""].join("\n");
  const written = text.replace(
    /(<!-- sizes -->\n)[\s\S]*?(<!-- \/sizes -->)/,
    (_, open, close) => open + table + close,
  );
  expect(written).toContain(table);
  if (written !== text) writeFileSync(readme, written);
});
