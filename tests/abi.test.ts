import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ARENA, CAPACITY_MAX, GENERATION_BITS, SLOT_BITS } from "../src/abi.js";

const path = (relative: string) => new URL(relative, import.meta.url);
const compile = (file: string) => new WebAssembly.Module(readFileSync(path(`../build/${file}`)));
const exportsOf = (file: string) => WebAssembly.Module.exports(compile(file)).map((entry) => entry.name);

/** The members that an interface of exports.ts declares. */
function declared(name: string): string[] {
  const text = readFileSync(path("../src/core/exports.ts"), "utf8");
  const body = new RegExp(`interface ${name}[^{]*{([\\s\\S]*?)\\n}`).exec(text)?.[1] ?? "";
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map((match) => match[1] as string);
}

const core = declared("CoreExports");
const checked = declared("CheckedExports");

describe("the border to the core", () => {
  test.each(["core.wasm", "core.checked.wasm", "core.narrow.wasm"])("%s imports nothing", (file) => {
    expect(WebAssembly.Module.imports(compile(file))).toEqual([]);
  });

  test("exports.ts describes all that the shipped core exports, and no more", () => {
    expect(core).toContain("memory");
    expect(exportsOf("core.wasm").sort()).toEqual([...core].sort());
  });

  test("the checked core exports that, and what lets tests look inside", () => {
    expect(checked).not.toEqual([]);
    expect(exportsOf("core.checked.wasm").sort()).toEqual([...core, ...checked].sort());
  });

  test("no 64-bit integer crosses in a signature", () => {
    const wat = readFileSync(path("../build/core.wat"), "utf8");
    const types = new Map([...wat.matchAll(/\(type (\S+) (\(func.*\))\)$/gm)].map((m) => [m[1], m[2]]));
    const exported = new Set([...wat.matchAll(/\(export "\w+" \(func (\S+)\)\)/g)].map((m) => m[1]));
    const signatures = [...wat.matchAll(/^ \(func (\S+) ?(.*)$/gm)].filter((m) => exported.has(m[1]));
    expect(types.size).toBeGreaterThan(0);
    expect(signatures.length).toBe(exported.size);
    expect(signatures.filter((m) => /i64/.test(m[2] ?? ""))).toEqual([]);
  });

  test("the core keeps to 16 KiB, and the pool alone to 7 KiB", () => {
    expect(readFileSync(path("../build/core.wasm")).length).toBeLessThanOrEqual(16 * 1024);
    expect(readFileSync(path("../build/core.pool.wasm")).length).toBeLessThanOrEqual(7 * 1024);
  });

  test("an id fits a double, and every block of the largest pool has a slot number beside the sentinel's", () => {
    expect(SLOT_BITS + GENERATION_BITS).toBe(53);
    expect(CAPACITY_MAX).toBe(2 ** SLOT_BITS - 1);
    expect(ARENA % 64).toBe(0);
  });
});
