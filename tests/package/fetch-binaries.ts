import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { npm } from "./stage.js";

const listed = fileURLToPath(new URL("../runtimes/binaries", import.meta.url));
const folder = fileURLToPath(new URL("../../build/runtimes", import.meta.url));
const LOCK = "package-lock.json";

/**
 * Fetches the runtimes that tests/runtimes/binaries lists into build/runtimes, where they stay. They are not among the
 * devDependencies, as they are most of a gigabyte that only this part of the tests needs.
 */
export function fetchBinaries(): { folder: string } | { missing: string } {
  const installed = join(folder, "node_modules");
  const [have, want] = [join(folder, LOCK), join(listed, LOCK)];
  if (existsSync(installed) && existsSync(have) && readFileSync(have).equals(readFileSync(want))) return { folder };
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  cpSync(listed, fresh, { recursive: true });
  try {
    npm(fresh, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline");
  } catch (error) {
    const missing = `the other runtimes could not be fetched: ${(error as Error).message}`;
    console.warn(`SKIPPED: ${missing}`);
    return { missing };
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
  return { folder };
}
