import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import type { EngineStats, FakeEngineOptions } from "../../src/testing/index.js";

const script = fileURLToPath(new URL("./engine.mjs", import.meta.url));

/** How often each thing goes wrong at an engine: parts of 1. */
export interface FaultRates {
  readonly busy?: number;
  readonly overloaded?: number;
  readonly broken?: number;
  readonly refuse?: number;
  readonly slow?: number;
  readonly die?: number;
  readonly truncate?: number;
}

export type SoakEngineOptions = FakeEngineOptions & { readonly seed: number; readonly rates: FaultRates };

/** A fake engine in a process of its own, which can be killed, and started again at the same port. */
export class SoakEngine {
  readonly port: number;
  readonly #options: SoakEngineOptions;
  #child: ChildProcess | undefined;

  private constructor(port: number, options: SoakEngineOptions) {
    this.port = port;
    this.#options = options;
  }

  static async start(options: SoakEngineOptions): Promise<SoakEngine> {
    const engine = new SoakEngine(await freePort(), options);
    await engine.start();
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const child = fork(script, [JSON.stringify({ ...this.#options, port: this.port })], { execArgv: [] });
    this.#child = child;
    const exited = once(child, "exit").then(([code]) => {
      throw new Error(`Expected an engine at port ${this.port}, but it ended with ${code}.`);
    });
    await Promise.race([once(child, "message"), exited]);
    exited.catch(() => {}); // from here on it may go
  }

  /** Ends the process as a crash does: nothing is said to anybody. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  /** Stops the process where it stands, or lets it go on. */
  freeze(isFrozen: boolean): void {
    this.#child?.kill(isFrozen ? "SIGSTOP" : "SIGCONT");
  }

  /** Has it answer nothing that it is asked from now on, or answer again. */
  hang(hang: boolean): void {
    this.#child?.send({ hang });
  }

  async stats(): Promise<EngineStats> {
    const child = this.#child as ChildProcess;
    const answer = once(child, "message");
    child.send({});
    const [{ stats }] = (await answer) as [{ stats: EngineStats }];
    return stats;
  }
}

// Below the ports that systems give to outgoing connections: one of those could take the port while its engine is away.
const PORTS_FROM = 20_000;
const PORTS = 10_000;
let nextPort = PORTS_FROM + (process.pid % PORTS);

async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries++) {
    const port = nextPort;
    nextPort = nextPort + 1 < PORTS_FROM + PORTS ? nextPort + 1 : PORTS_FROM;
    if (await isFree(port)) return port;
  }
  throw new Error(`Expected a free port from ${PORTS_FROM} on, got none of ${PORTS}.`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
