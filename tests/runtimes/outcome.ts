import { type ChildProcess, spawn } from "node:child_process";
import { expect } from "vitest";
import { leaveRow, type Row } from "../package/runtime-table.js";

const TIMEOUT_MS = 120_000;

/** Runs a program to its end. Returns what it wrote, and throws where it failed or took too long. */
export function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], DENO_NO_UPDATE_CHECK: "1" };
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: TIMEOUT_MS });
    const output = collect(child);
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(output.stdout);
      else reject(new Error(`${command} ended with ${signal ?? code}:\n${output.stdout}${output.stderr}`));
    });
  });
}

/** Gathers what a program writes. */
export function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    output.stderr += chunk;
  });
  return output;
}

const SUM = /(?:^|\n)([^\n]+): (\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/;

/** Cases that the suite has at least: a suite that lost them has not passed. */
const CASES_MIN = 35;

/**
 * Holds what the portable suite printed in a runtime: everything passed, and what the runtime lacks is all that was
 * skipped. Shows the sum, and leaves a row for the README.
 */
export function expectPassed(
  printed: string,
  row: Pick<Row, "runtime" | "core"> & { skips?: number; as?: string },
): void {
  const [, name = "", passed, failed, skipped = "0"] = SUM.exec(printed) ?? [];
  console.log(`${row.runtime}: ${printed.trim()}`);
  expect({ failed, skipped, printed }).toEqual({ failed: "0", skipped: String(row.skips ?? 0), printed });
  expect(Number(passed) + Number(skipped)).toBeGreaterThanOrEqual(CASES_MIN);
  const version = row.as ?? name.replace(/^\S+ /, "");
  const result = `${passed} passed, ${failed} failed${skipped === "0" ? "" : `, ${skipped} skipped`}`;
  leaveRow({ runtime: row.runtime, version, core: row.core, result });
}
