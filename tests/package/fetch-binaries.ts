import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROGRAMS } from "../runtimes/programs.js";
import { NpmError, npm } from "./npm.js";

const listed = fileURLToPath(new URL("../runtimes/binaries", import.meta.url));
const LOCK = "package-lock.json";

/** Where other runtimes' binaries are, or why there are none. */
export type Binaries = { readonly folder: string } | { readonly missing: string };

/** What fetching takes from outside: a test gives its own. */
export interface Fetching {
  /** Where the binaries stay. */
  readonly folder?: string;
  /** Installs what a folder's lock file lists. */
  readonly install?: (folder: string) => void;
  /** Asks the registry for something. */
  readonly probe?: () => void;
  readonly warn?: (line: string) => void;
  readonly platform?: string;
}

/** The platform of the programs that are listed. */
const PLATFORM = "linux-x64";

/** What npm calls it when it does not reach a registry, or is refused there. Other faults are ours. */
const UNREACHABLE =
  /^(EAI_AGAIN|ECONN\w+|EHOSTUNREACH|ENETUNREACH|ENOTCACHED|ENOTFOUND|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E40[137]|E5\d\d)$/;

function installLocked(folder: string): void {
  npm(folder, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline");
}

function probeRegistry(): void {
  npm(listed, "view", "workerd", "version", "--prefer-online", "--fetch-retries=0");
}

/**
 * Fetches the runtimes that tests/runtimes/binaries lists into build/runtimes, where they stay. They are not among the
 * devDependencies, as they are most of a gigabyte that only this part of the tests needs. Where there is no registry, or
 * another platform, one line says so.
 */
export function fetchBinaries({
  folder = fileURLToPath(new URL("../../build/runtimes", import.meta.url)),
  install = installLocked,
  probe = probeRegistry,
  warn = console.warn,
  platform = `${process.platform}-${process.arch}`,
}: Fetching = {}): Binaries {
  const skip = (missing: string) => {
    warn(`SKIPPED: ${missing}`);
    return { missing };
  };
  if (platform !== PLATFORM)
    return skip(`no other runtimes here, as those listed are for ${PLATFORM}, not ${platform}.`);
  const [have, want] = [join(folder, LOCK), join(listed, LOCK)];
  const isLocked = existsSync(have) && readFileSync(have).equals(readFileSync(want));
  if (isLocked && lackingIn(folder).length === 0) return { folder };
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  cpSync(listed, fresh, { recursive: true });
  try {
    install(fresh);
    const lacking = lackingIn(fresh);
    if (lacking.length > 0) {
      probe(); // npm leaves out what is optional and cannot be had, without a word: it may be the registry
      throw new Error(`Expected npm to install ${lacking.join(", ")} of tests/runtimes/binaries; it did not.`);
    }
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    const code = error instanceof NpmError ? error.npmCode : undefined;
    if (code === undefined || !UNREACHABLE.test(code)) throw error;
    return skip(`no other runtimes here, as npm reaches no registry to fetch them from (${code}).`);
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
  return { folder };
}

/** The runtimes whose programs a folder does not have. */
const lackingIn = (folder: string) =>
  Object.entries(PROGRAMS).flatMap(([name, file]) => (existsSync(join(folder, "node_modules", file)) ? [] : [name]));
