import { existsSync, readFileSync } from "node:fs";
import { cpus, loadavg, release, type } from "node:os";

/** Where and with what a benchmark ran. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly os: string;
  readonly node: string;
  readonly v8: string;
  readonly kvroute: string;
  readonly date: string;
  /** Processes that wanted a core, averaged over the last minute: above 0, somebody else was at work. */
  readonly load: number;
}

export function describeMachine(): Machine {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? "unknown processor",
    cores: processors.length,
    os: `${type()} ${release()} ${process.arch}`,
    node: process.version,
    v8: process.versions.v8,
    kvroute: packageVersion(),
    date: new Date().toISOString().slice(0, 10),
    load: loadavg()[0] ?? 0,
  };
}

/** The version in the nearest package.json above this file, wherever it was compiled to. */
function packageVersion(): string {
  let folder = new URL(".", import.meta.url);
  while (folder.pathname !== "/") {
    const file = new URL("package.json", folder);
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
      if (name === "kvroute" && version !== undefined) return version;
    }
    folder = new URL("..", folder);
  }
  return "unknown";
}
