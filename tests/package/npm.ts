import { execFileSync, type SpawnSyncReturns } from "node:child_process";

const TIMEOUT_MS = 600_000;

/** npm has failed. */
export class NpmError extends Error {
  /** What npm calls the fault, such as `ENOTFOUND`; `undefined` where it gave no name. */
  readonly npmCode: string | undefined;

  constructor(command: string, cwd: string, cause: unknown) {
    const { stdout, stderr, code } = cause as SpawnSyncReturns<string> & { code?: string };
    super(`${command} failed in ${cwd}:\n${stdout}${stderr}`, { cause });
    this.npmCode = /^npm (?:error|ERR!) code (\S+)/m.exec(stderr ?? "")?.[1] ?? code;
  }
}

/** Runs the npm of the machine in a folder: a dev dependency brings an old one along, which npx puts first. */
export function npm(cwd: string, ...args: string[]): string {
  const path = (process.env["PATH"] ?? "").split(":").filter((part) => !part.includes("node_modules"));
  const env = { PATH: path.join(":"), HOME: process.env["HOME"], CI: process.env["CI"] };
  try {
    return execFileSync("npm", args, { cwd, env, encoding: "utf8", stdio: "pipe", timeout: TIMEOUT_MS });
  } catch (cause) {
    throw new NpmError(`npm ${args.join(" ")}`, cwd, cause);
  }
}
