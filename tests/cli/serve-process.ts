import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { until } from "../support/until.js";

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

/** The built command line in a process of its own. */
export interface CliProcess {
  /** What it has written for people, and the log, so far. */
  readonly stderr: string;
  readonly stdout: string;
  /** The lines of the log so far. */
  readonly lines: readonly Record<string, unknown>[];
  /** Its exit code, once it has ended. */
  readonly exit: Promise<number | null>;
  kill(signal: NodeJS.Signals): void;
}

/** A server of it that listens. */
export interface ServeProcess extends CliProcess {
  readonly url: string;
}

/** Starts the built command line, with no variables of kvroute but those given. */
export function startCli(argv: readonly string[], env: Readonly<Record<string, string>> = {}): CliProcess {
  if (!existsSync(CLI)) throw new Error("Expected dist/cli.js, got nothing there. Run `npm run build` first.");
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KVROUTE_")));
  const child: ChildProcess = spawn(process.execPath, [CLI, ...argv], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...inherited, ...env },
  });
  const said = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk: Buffer) => {
    said.stdout += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    said.stderr += chunk.toString();
  });
  const exit = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code));
  });
  return {
    get stderr() {
      return said.stderr;
    },
    get stdout() {
      return said.stdout;
    },
    get lines() {
      const whole = said.stdout.slice(0, said.stdout.lastIndexOf("\n") + 1);
      return whole.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    },
    exit,
    kill: (signal) => child.kill(signal),
  };
}

/** Starts a server at a port that is free, and waits until it has said how to try it. */
export async function startServe(
  argv: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<ServeProcess> {
  const child = startCli(["serve", "--port", "0", ...argv], env);
  let hasEnded = false;
  child.exit.then(() => {
    hasEnded = true;
  });
  await until(() => hasEnded || child.stderr.includes("curl -si"), "the server says how to try it");
  const url = /listens at (\S+),/.exec(child.stderr)?.[1];
  if (hasEnded || url === undefined) throw new Error(`Expected a server that listens, got: ${child.stderr}`);
  return Object.create(child, { url: { value: url } });
}
