// Time from `import` to the first decision in a fresh process of each runtime, beside the import of an empty module.
//
//     node build/bench/cold-start.js
//
// Other runtimes than this Node are those that the tests have fetched into build/runtimes.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeMachine } from "./machine.js";
import { quantile } from "./stats.js";
import { table } from "./table.js";

const ROUNDS = 15;

const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
const binary = (relative: string) => path(`build/runtimes/node_modules/${relative}`);
const folder = mkdtempSync(join(tmpdir(), "kvroute-cold-"));
const PROGRAM = join(folder, "program.mjs");

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

const RUNTIMES: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  [`Node ${process.versions.node}`, process.execPath],
  ["Node 22", binary("node-22/bin/node")],
  ["Node 24", binary("node-24/bin/node")],
  ["Node 26", binary("node-26/bin/node")],
  ["Deno", binary("@deno/linux-x64-glibc/deno"), "run", "--allow-read", "--node-modules-dir=manual", "--no-remote"],
  ["Bun", binary("@oven/bun-linux-x64/bin/bun")],
];

interface Sample {
  readonly importMs: number;
  readonly decideMs: number;
}

function sample(command: string, args: readonly string[], what: string): Sample {
  const printed = execFileSync(command, [...args, PROGRAM, what], { encoding: "utf8", timeout: 60_000 });
  return JSON.parse(printed) as Sample;
}

const ms = (samples: readonly number[]) =>
  `${quantile(samples, 0.5).toFixed(1)} (${quantile(samples, 0.1).toFixed(1)})`;

lay();
const rows = [
  ["milliseconds, median (10th percentile)", "import of an empty module", "import of kvroute", "first decision"],
];
for (const [name, command, ...args] of RUNTIMES) {
  if (!existsSync(command)) continue;
  sample(command, args, "kvroute"); // what the runtime caches on disk is there from now on
  const empty: Sample[] = [];
  const full: Sample[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    empty.push(sample(command, args, "empty"));
    full.push(sample(command, args, "kvroute"));
  }
  const imports = [empty, full].map((samples) => ms(samples.map(({ importMs }) => importMs)));
  rows.push([name, ...imports, ms(full.map(({ decideMs }) => decideMs))]);
}

const { kvroute, date, cpu, cores, load } = describeMachine();
console.log(`kvroute ${kvroute}, ${date}: ${cpu}, ${cores} cores, load ${load.toFixed(1)}\n`);
console.log(table(rows));
rmSync(folder, { recursive: true, force: true });
