import { type ChildProcess, spawn } from "node:child_process";

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
