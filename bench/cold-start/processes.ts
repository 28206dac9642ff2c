import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PROGRAMS } from "../../tests/runtimes/programs.js";
import type { Runtime, Sample } from "./contract.js";

const TIMEOUT_MS = 60_000;
const DENO = ["run", "--allow-read", "--node-modules-dir=manual", "--no-remote"];

/** Runs a program that prints a sample. */
export function printed(command: string, args: readonly string[]): Sample {
  return JSON.parse(execFileSync(command, args, { encoding: "utf8", timeout: TIMEOUT_MS })) as Sample;
}

/** Node, Deno and Bun: a process each time. */
export function processes(project: string, binaries: string): Runtime[] {
  const program = join(project, "program.mjs");
  const runtime = (name: string, command: string, ...args: string[]): Runtime[] =>
    existsSync(command) ? [{ name, sample: async (what) => printed(command, [...args, program, what]) }] : [];
  const fetched = (name: keyof typeof PROGRAMS, ...args: string[]) =>
    runtime(name, join(binaries, PROGRAMS[name]), ...args);
  return [
    ...runtime(`Node ${process.versions.node}`, process.execPath),
    ...(["Node 22", "Node 24", "Node 26"] as const).flatMap((name) => fetched(name)),
    ...fetched("Deno", ...DENO),
    ...fetched("Bun", "run"),
  ];
}
