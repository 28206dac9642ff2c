import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, unknown>>;

/** Every file that a map of conditions leads to. */
function targets(entry: unknown): string[] {
  if (typeof entry === "string") return [entry];
  return Object.values(entry as object).flatMap(targets);
}

const node = (code: string, ...flags: string[]) =>
  execFileSync(process.execPath, [...flags, "--eval", code], { cwd: root, encoding: "utf8" }).trim();

describe("the built package", () => {
  test.each(targets([manifest["exports"], manifest["imports"], manifest["bin"]]))("%s exists", (file) => {
    expect(existsSync(new URL(`../../${file}`, import.meta.url))).toBe(true);
  });

  test("is imported and required by its name", () => {
    const use = "const pool = new BlockPool({ capacity: 7 }); console.log(pool.capacity)";
    expect(node(`import { BlockPool } from "kvroute"; ${use}`, "--input-type=module")).toBe("7");
    expect(node(`const { BlockPool } = require("kvroute"); ${use}`, "--no-warnings")).toBe("7");
  });

  const code = Object.keys(manifest["exports"] ?? {}).filter((entry) => !/\.(wasm|json)$/.test(entry));

  test("is required by every entry: none has a top-level await", () => {
    const names = code.map((entry) => entry.replace(".", "kvroute"));
    const use = `console.log(${JSON.stringify(names)}.filter((name) => Object.keys(require(name)).length === 0).length)`;
    expect(node(use, "--no-warnings")).toBe("0");
  });

  test("compiles nothing at import", () => {
    const spy = "WebAssembly.Module = WebAssembly.Instance = class { constructor() { throw new Error('compiled') } };";
    expect(node(`${spy} import("kvroute").then(() => console.log("quiet"))`)).toBe("quiet");
  });

  test("has a browser file that imports nothing", () => {
    expect(read("dist/kvroute.browser.js")).not.toMatch(/^import\b|\bfrom "|(?<!\.)\bimport\(/m);
  });

  test("its seams for edge runtimes hold no bytes and compile none", () => {
    for (const seam of ["workerd", "edge-light"]) {
      const text = read(`dist/core/module.${seam}.js`);
      expect(text).toContain("core.wasm");
      expect(text).not.toMatch(/AGFzb|new WebAssembly\.Module/);
    }
  });

  test("its lock file names no host", () => {
    expect(read("package-lock.json")).not.toMatch(/"resolved": "https?:/);
  });
});
