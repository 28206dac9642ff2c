// Time from `import` to the first decision in a fresh start of each runtime, beside the import of an empty module.
//
//     node build/bench/cold-start.js
//
// Other runtimes than this Node are those that the tests have fetched into build/runtimes, and the machine's Chromium.

import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "./cold-start/chromium.js";
import type { Sample } from "./cold-start/contract.js";
import { edge, workerd } from "./cold-start/isolates.js";
import { processes } from "./cold-start/processes.js";
import { describeMachine } from "./machine.js";
import { quantile } from "./stats.js";
import { table } from "./table.js";

const ROUNDS = 15;

const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "kvroute-cold-"));

/** Lays the built package and what it depends on into a project of its own, where no configuration of ours is read. */
function lay(): void {
  cpSync(path("bench/cold-start"), folder, { recursive: true });
  for (const part of ["dist", "package.json"]) {
    cpSync(path(part), join(folder, "node_modules/kvroute", part), { recursive: true });
  }
  for (const name of readdirSync(path("node_modules"))) {
    if (!name.startsWith(".")) symlinkSync(path(`node_modules/${name}`), join(folder, "node_modules", name));
  }
}

const ms = (samples: readonly number[]) =>
  `${quantile(samples, 0.5).toFixed(1)} (${quantile(samples, 0.1).toFixed(1)})`;

lay();
const binaries = path("build/runtimes/node_modules");
const runtimes = [
  ...processes(folder, binaries),
  ...(await workerd(folder, binaries)),
  ...(await edge(folder)),
  ...(await chromium(folder)),
];
const rows = [
  ["milliseconds, median (10th percentile)", "import of an empty module", "import of kvroute", "first decision"],
];
for (const runtime of runtimes) {
  await runtime.sample("kvroute"); // what the runtime caches on disk is there from now on
  const empty: Sample[] = [];
  const full: Sample[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    empty.push(await runtime.sample("empty"));
    full.push(await runtime.sample("kvroute"));
  }
  await runtime.close?.();
  const imports = [empty, full].map((samples) => ms(samples.map(({ importMs }) => importMs)));
  rows.push([runtime.name, ...imports, ms(full.map(({ decideMs }) => decideMs))]);
}

const { kvroute, date, cpu, cores, load } = describeMachine();
console.log(`kvroute ${kvroute}, ${date}: ${cpu}, ${cores} cores, load ${load.toFixed(1)}\n`);
console.log(table(rows));
rmSync(folder, { recursive: true, force: true });
