import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { EngineStats, FakeEngineOptions } from "../../src/testing/index.js";

const script = fileURLToPath(new URL("./engine-process.mjs", import.meta.url));

/** A fake engine in a process of its own. */
export interface EngineProcess {
  readonly url: string;
  stats(): Promise<EngineStats>;
  kill(): void;
}

/** Starts a fake engine in a process of its own. Its options are those that JSON can say. */
export async function startEngine(options: FakeEngineOptions): Promise<EngineProcess> {
  const child: ChildProcess = fork(script, [JSON.stringify(options)], { execArgv: [] });
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  return {
    url,
    async stats() {
      const answer = once(child, "message");
      child.send("stats");
      const [{ stats }] = (await answer) as [{ stats: EngineStats }];
      return stats;
    },
    kill: () => child.kill("SIGKILL"),
  };
}
