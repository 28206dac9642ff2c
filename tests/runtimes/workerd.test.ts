import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { bundle, bundleAll } from "./bundle.js";
import { expectPassed } from "./outcome.js";
import { PROGRAMS } from "./programs.js";
import { serve, type Workerd } from "./workerd.js";

const project = inject("project");
const binaries = inject("binaries");
const modules = "folder" in binaries ? join(binaries.folder, "node_modules") : null;

describe.skipIf(modules === null)("the packed package in workerd", () => {
  const binary = join(modules ?? "", PROGRAMS["Cloudflare workerd"]);
  const running: Workerd[] = [];
  let code: string;

  beforeAll(async () => {
    code = await bundle(join(project, "workerd.js"), "workerd");
  });

  afterAll(async () => {
    for (const workerd of running) await workerd.stop();
  });

  async function start(name: string, worker: string, modules: Record<string, string> = {}): Promise<string> {
    const workerd = await serve(name, { project, binary, code: worker, modules });
    running.push(workerd);
    return workerd.url;
  }

  test("carries no bytes of the core: the runtime imports it", () => {
    expect(code).toMatch(/^import \w+ from '\.\/core\.wasm';$/m);
    expect(code).not.toMatch(/AGFzb|new WebAssembly\.Module/);
  });

  test("passes the portable suite", async () => {
    const { version } = JSON.parse(readFileSync(join(modules ?? "", "workerd/package.json"), "utf8"));
    const printed = await (await fetch(await start("portable", code))).text();
    expectPassed(printed, { runtime: "Cloudflare workerd", core: "`import` of core.wasm", as: version });
  });

  test("serves requests with what was made at global scope", async () => {
    const url = await start("global", await bundle(join(project, "workerd-global.js"), "workerd"));
    const answers = [1, 2].map(async () => (await fetch(url)).json());
    const [first, second] = (await Promise.all(answers)) as { selectionId: string; activeRequests: number }[];
    const rest = { worker: { workerId: "a", dpRank: 0 }, blocks: 2, capacity: 4, cached: 0 };
    expect(first).toMatchObject(rest);
    expect(second).toMatchObject(rest);
    expect([first?.activeRequests, second?.activeRequests].sort()).toEqual([1, 2]);
    expect(first?.selectionId).not.toBe(second?.selectionId);
    expect((await fetch(`${url}/ready`)).status).toBe(200);
    expect((await fetch(`${url}/v1/nothing`)).status).toBe(502); // the router asks its engine, which is not there
  });

  test("loads what requests need from a module of its own, for several first ones at once", async () => {
    const [[, worker = ""] = [], ...rest] = await bundleAll(join(project, "workerd-global.js"), "workerd");
    const modules = Object.fromEntries(rest);
    expect(Object.keys(modules)).toContain("desk.js");
    const url = await start("modules", worker, modules);
    const answers = [1, 2, 3, 4].map(async () => (await fetch(`${url}/v1/nothing`)).status);
    expect(await Promise.all(answers)).toEqual([502, 502, 502, 502]);
  });
});
