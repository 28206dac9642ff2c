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
 * What one imports, and what it may weigh, in KiB, minified and gzipped with all it needs but the base64 of the core: what
 * it weighs and a little room. The goal for all of `kvroute` is 32. What is above it is the router: retries, breakers,
 * health checks, admission, predictions, histograms and receipts are most of 9 KiB, and no policy can go, as each is chosen
 * by its name.
 */
const IMPORTS = [
  ["`BlockPool` of `kvroute`", `export { BlockPool } from "kvroute";`, 5],
  ["`PrefixIndex` and `hashTokens`", `export { PrefixIndex, hashTokens } from "kvroute";`, 6],
  ["`SelectionService`", `export { SelectionService } from "kvroute";`, 19],
  ["`createRouter`", `export { createRouter } from "kvroute";`, 44],
  ["all of `kvroute`", `export * from "kvroute";`, 47],
  ["all of `kvroute/disagg`", `export * from "kvroute/disagg";`, 20],
  ["all of `kvroute/events`", `export * from "kvroute/events";`, 15],
  ["all of `kvroute/http`", `export * from "kvroute/http";`, 80],
  ["all of `kvroute/testing`", `export * from "kvroute/testing";`, 22],
] as const;

/** Bundles and minifies an import. Returns the bytes of the gzipped result. */
async function weigh(code: string, name: string): Promise<number> {
  const input = join(project, `size-${name}.js`);
  writeFileSync(input, code);
  const seam = {
    name: "seam",
    enforce: "pre" as const,
    resolveId: (id: string) => (id === "#core" ? { id, external: true } : null),
  };
  const bundled = (await build({
    root: project,
    configFile: false,
    logLevel: "error",
    plugins: [seam],
    build: {
      write: false,
      minify: true,
      target: "es2022",
      modulePreload: false,
      rollupOptions: { input, preserveEntrySignatures: "strict" },
    },
  })) as Rollup.RollupOutput;
  return gzipSync(bundled.output.map((part) => ("code" in part ? part.code : "")).join(""), { level: 9 }).length;
}

const kib = (bytes: number) => (bytes / KIB).toFixed(1);

test("the core and each import keep within their budgets, and the README says what they weigh", async () => {
  const inline = JSON.stringify(join(project, "node_modules/kvroute/dist/core/module.inline.js"));
  const rows = [
    `| core.wasm | ${kib(core.length)}, not gzipped | 16 |`,
    `| its base64 in JavaScript, with the loader | ${kib(await weigh(`export * from ${inline};`, "core"))} | |`,
  ];
  const over: string[] = [];
  for (const [index, [what, code, most]] of IMPORTS.entries()) {
    const bytes = await weigh(code, String(index));
    rows.push(`| ${what} | ${kib(bytes)} | ${most} |`);
    if (bytes > most * KIB) over.push(`${what}: ${kib(bytes)} KiB, at most ${most}`);
  }
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
