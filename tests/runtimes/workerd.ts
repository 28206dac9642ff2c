import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { collect } from "./process.js";

/** A workerd that serves a worker. */
export interface Workerd {
  readonly url: string;
  stop(): Promise<void>;
}

/** What a worker is made of, beyond its code and the core. */
export interface WorkerSetup {
  /** Where kvroute is installed. */
  readonly project: string;
  /** The program. */
  readonly binary: string;
  readonly code: string;
  /** Other modules of it, by the names of their files. */
  readonly modules?: Readonly<Record<string, string>>;
  /** Durable objects: binding and class. */
  readonly objects?: Readonly<Record<string, string>>;
  /** Texts that are bound: name and value. */
  readonly texts?: Readonly<Record<string, string>>;
}

const LISTEN_MS = 20_000;

/** Starts workerd on a port of its choice. */
export async function serve(name: string, setup: WorkerSetup): Promise<Workerd> {
  const folder = join(setup.project, `workerd-${name}`);
  mkdirSync(folder, { recursive: true });
  const modules = { "worker.js": setup.code, ...setup.modules };
  for (const [file, code] of Object.entries(modules)) writeFileSync(join(folder, file), code);
  copyFileSync(join(setup.project, "node_modules/kvroute/dist/core/core.wasm"), join(folder, "core.wasm"));
  writeFileSync(join(folder, "config.capnp"), configOf(Object.keys(modules), setup.objects ?? {}, setup.texts ?? {}));
  const args = ["serve", "--control-fd=3", join(folder, "config.capnp")];
  const child = spawn(setup.binary, args, { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await listening(child);
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      child.kill("SIGKILL");
      return ended;
    },
  };
}

function listening(child: ChildProcess): Promise<number> {
  const output = collect(child);
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill("SIGKILL");
      reject(new Error(`workerd ${why}:\n${output.stdout}${output.stderr}`));
    };
    const timer = setTimeout(() => fail("did not listen"), LISTEN_MS);
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => fail(`ended with ${code}`));
    createInterface(child.stdio[3] as Readable).on("line", (line) => {
      const { event, port } = JSON.parse(line) as { event: string; port: number };
      if (event !== "listen") return;
      clearTimeout(timer);
      child.removeAllListeners("close");
      resolve(port);
    });
  });
}

function configOf(
  modules: readonly string[],
  objects: Readonly<Record<string, string>>,
  texts: Readonly<Record<string, string>>,
): string {
  const bindings = Object.entries(objects).map(
    ([name, cls]) => `(name = "${name}", durableObjectNamespace = "${cls}")`,
  );
  bindings.push(...Object.entries(texts).map(([name, text]) => `(name = "${name}", text = "${text}")`));
  const namespaces = Object.values(objects).map((cls) => `(className = "${cls}", uniqueKey = "${cls}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [
    ${modules.map((file) => `(name = "${file}", esModule = embed "${file}"),`).join("\n    ")}
    (name = "core.wasm", wasm = embed "core.wasm"),
  ],
  compatibilityDate = "2026-11-01",
  bindings = [${bindings.join(", ")}],
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (inMemory = void),
);
`;
}
