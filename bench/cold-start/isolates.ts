import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "../../tests/runtimes/bundle.js";
import { platformModule } from "../../tests/runtimes/edge.js";
import { PROGRAMS } from "../../tests/runtimes/programs.js";
import { serve } from "../../tests/runtimes/workerd.js";
import type { Runtime } from "./contract.js";
import { printed } from "./processes.js";

/** workerd: seen from outside, as no clock of its own goes on while it computes. Imported is from the start of its process. */
export async function workerd(project: string, binaries: string): Promise<Runtime[]> {
  const binary = join(binaries, PROGRAMS["Cloudflare workerd"]);
  if (!existsSync(binary)) return [];
  const codes = {
    empty: await bundle(join(project, "worker-empty.mjs"), "workerd"),
    kvroute: await bundle(join(project, "worker.mjs"), "workerd"),
  };
  return [
    {
      name: "workerd, process and request included",
      async sample(what) {
        const begun = performance.now();
        const worker = await serve(`cold-${what}`, { project, binary, code: codes[what] });
        try {
          await (await fetch(worker.url)).text();
          const imported = performance.now();
          await (await fetch(`${worker.url}/decide`)).text();
          return { importMs: imported - begun, decideMs: performance.now() - imported };
        } finally {
          await worker.stop();
        }
      },
    },
  ];
}

/** Vercel's edge runtime: a process each time, and in it a machine that is there before the time begins. */
export async function edge(project: string): Promise<Runtime[]> {
  const core = join(project, "node_modules/kvroute/dist/core/core.wasm");
  for (const name of ["edge", "edge-empty"]) {
    const code = await bundle(join(project, `${name}.mjs`), "edge-light", [platformModule]);
    writeFileSync(join(project, `${name}.bundle.js`), code);
  }
  const vm = join(project, "edge-vm.mjs");
  const file = { empty: "edge-empty.bundle.js", kvroute: "edge.bundle.js" };
  return [
    {
      name: "edge runtime VM, core compiled before",
      sample: async (what) => printed(process.execPath, [vm, join(project, file[what]), core]),
    },
  ];
}
