import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { bundlePortable } from "./bundle.js";
import { type Binaries, fetchBinaries } from "./fetch-binaries.js";
import { npm } from "./npm.js";
import { writeRuntimeTable } from "./runtime-table.js";

// Sets the stage for all tests of the packed package: packs it, installs it in a project outside the repository, and
// lays the portable suite and its hosts beside it.

declare module "vitest" {
  interface ProvidedContext {
    /** The project that has installed the packed package. */
    readonly project: string;
    readonly tarball: string;
    readonly binaries: Binaries;
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const hosts = fileURLToPath(new URL("../runtimes/hosts", import.meta.url));

export default async function setup({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "kvroute-packed-"));
  const project = join(folder, "project");
  cpSync(hosts, project, { recursive: true });
  const tarball = join(folder, pack(folder));
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  npm(project, "install", tarball, "--prefer-offline", "--no-audit", "--no-fund");
  await bundlePortable(join(project, "portable.js"));
  provide("project", project);
  provide("tarball", tarball);
  provide("binaries", fetchBinaries());
  return () => {
    writeRuntimeTable();
    rmSync(folder, { recursive: true, force: true });
  };
}

/** Packs what stands in dist. The build has run before; here it would pull the files from under other tests. */
function pack(folder: string): string {
  const listed = JSON.parse(npm(root, "pack", "--ignore-scripts", "--json", "--pack-destination", folder));
  return listed[0].filename;
}

/** Reads a file of the repository. */
export const readRoot = (file: string): string => readFileSync(join(root, file), "utf8");
