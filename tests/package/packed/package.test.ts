import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, inject, test } from "vitest";
import { filesIn, reachable, targetsOf } from "./contents.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const project = inject("project");
const folder = join(project, "node_modules/kvroute");
const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const entries = Object.keys(manifest.exports);

/** What turns bytes into a module, or is such bytes, in base64. */
const COMPILES = /AGFzb|new WebAssembly\.Module|WebAssembly\.(compile|instantiate)\b/;

const npx = (...args: string[]) => execFileSync("npx", ["--no-install", ...args], { cwd: root, encoding: "utf8" });

describe("the packed package", () => {
  const files = filesIn(folder);
  const doors = targetsOf([manifest.exports, manifest.imports, manifest.bin, "dist/kvroute.browser.js"]);
  const { files: reached, packages } = reachable(folder, doors);

  test("has every file that its exports, its imports and their imports lead to", () => {
    expect([...reached].filter((file) => !files.includes(file))).toEqual([]);
  });

  test("has nothing in dist that they do not lead to, but source maps", () => {
    const rest = files.filter((file) => file.startsWith("dist/") && !file.endsWith(".map") && !reached.has(file));
    const isTypes = (file: string) => file.startsWith("dist/types/"); // tsc writes one for each source
    expect(rest.filter((file) => !isTypes(file))).toEqual([]);
  });

  test("has types for every entry, and no condition in front of them", () => {
    const code = entries.filter((entry) => !/\.(wasm|json)$/.test(entry));
    expect(code).toEqual(expect.arrayContaining([".", "./disagg", "./events", "./http", "./node", "./testing"]));
    for (const entry of code) expect(Object.keys(manifest.exports[entry])).toEqual(["types", "default"]);
    expect(Object.keys(manifest.imports["#core"])).toEqual(["workerd", "edge-light", "default"]);
  });

  test("declares the packages that it imports", () => {
    const names = [...packages].filter((name) => !/^node:|^#core$/.test(name));
    const base = (name: string) => name.split("/", name.startsWith("@") ? 2 : 1).join("/");
    expect(names.map(base).filter((name) => !(name in manifest.dependencies))).toEqual([]);
    expect(names.map(base)).toEqual(expect.arrayContaining(["@assemblyscript/loader", "hono", "ws"]));
  });

  test("asks Node for nothing where it is to run everywhere, and compiles bytes where the default condition leads alone", () => {
    const everywhere = entries.filter((entry) => !/^\.\/(node|testing\/node|core\.wasm|package\.json)$/.test(entry));
    const doors = targetsOf([everywhere.map((entry) => manifest.exports[entry].default), manifest.imports]);
    const { packages } = reachable(folder, [...doors, "dist/kvroute.browser.js"]);
    expect([...packages].filter(isBuiltin)).toEqual([]);
    const { "edge-light": edge, workerd } = manifest.imports["#core"];
    for (const seam of [edge, workerd]) {
      for (const file of reachable(folder, targetsOf(seam)).files) {
        if (file.endsWith(".js")) expect(readFileSync(join(folder, file), "utf8")).not.toMatch(COMPILES);
      }
    }
  });

  test("runs nothing when it is installed", () => {
    const hooks = Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name));
    expect(hooks).toEqual([]);
  });

  test("holds what one reads, and no sources, tests or configuration", () => {
    const top = new Set(files.map((file) => file.split("/")[0]));
    const expected = ["CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "dist", "docs", "package.json"];
    expect([...top].sort()).toEqual(expected);
  });

  test("has a command that runs where it is installed", () => {
    const command = join(project, "node_modules/.bin/kvroute");
    expect(execFileSync(command, ["--version"], { encoding: "utf8" })).toBe(`${manifest.version}\n`);
  });

  test("has no fault that publint knows of", () => {
    expect(npx("publint", "--strict", inject("tarball"))).toContain("All good!");
  });

  test("has types that resolve, wherever ESM is imported", () => {
    const args = ["--profile", "esm-only", "--exclude-entrypoints", "./core.wasm", "--format", "ascii"];
    const printed = npx("attw", inject("tarball"), ...args); // it fails where a problem is not of a kind left aside
    for (const entry of entries) if (entry !== "./core.wasm") expect(printed).toContain(entry.replace(".", "kvroute"));
  });
});
