import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EdgeVM } from "@edge-runtime/vm";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { bundle } from "./bundle.js";
import { HANDED_OVER, handOver, platformModule } from "./edge.js";
import { expectPassed } from "./outcome.js";

const project = inject("project");
const { version } = JSON.parse(
  readFileSync(new URL("../../node_modules/@edge-runtime/vm/package.json", import.meta.url), "utf8"),
);

describe("the packed package in Vercel's edge runtime", () => {
  let code: string;

  beforeAll(async () => {
    code = await bundle(join(project, "edge.js"), "edge-light", [platformModule]);
  });

  test("carries no bytes of the core and compiles none", () => {
    expect(code).toContain(HANDED_OVER);
    expect(code).not.toMatch(/AGFzb|new WebAssembly\.Module|WebAssembly\.(compile|instantiate)\b/);
  });

  test("passes the portable suite with a module of another realm", async () => {
    const vm = new EdgeVM({ codeGeneration: { strings: false, wasm: false }, extend: handOver(project) });
    expect(vm.evaluate(`${HANDED_OVER} instanceof WebAssembly.Module`)).toBe(false);
    vm.evaluate(code);
    const response = await vm.dispatchFetch("http://edge/portable");
    const row = { runtime: "Vercel edge runtime", core: "`import` of core.wasm?module", as: `VM ${version}` } as const;
    expectPassed(await response.text(), { ...row, skips: 2 });
  });
});
