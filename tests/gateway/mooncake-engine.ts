import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("./mooncake-engine.mjs", import.meta.url));

export interface SteppedEngineOptions {
  readonly name: string;
  readonly blockSize: number;
  readonly numGpuBlocks: number;
  readonly maxNumBatchedTokens: number;
  readonly prefillMsPerToken: number;
  /** What a pass takes that only decodes. */
  readonly decodeMs: number;
}

/** How an engine stands. */
interface Standing {
  /** When something happens next of itself, `null` if nothing does. */
  readonly nextMs: number | null;
  readonly generationTokens: number;
  readonly finished: number;
  readonly preemptions: number;
}

/** A fake engine in a process of its own, whose time goes on when it is told so. */
export class SteppedEngine {
  standing: Standing = { nextMs: null, generationTokens: 0, finished: 0, preemptions: 0 };
  readonly #child: ChildProcess;
  #onStanding: ((standing: Standing) => void) | undefined;

  private constructor(
    child: ChildProcess,
    readonly url: string,
    onTaken: (engine: SteppedEngine) => void,
  ) {
    this.#child = child;
    child.on("message", (message) => {
      if (message === "taken") onTaken(this);
      else this.#onStanding?.(message as Standing);
    });
  }

  /** Starts an engine. `onTaken` is called for each request that it takes. */
  static async start(options: SteppedEngineOptions, onTaken: (engine: SteppedEngine) => void): Promise<SteppedEngine> {
    const child = fork(script, [JSON.stringify(options)], { execArgv: [] });
    const [{ url }] = (await once(child, "message")) as [{ url: string }];
    return new SteppedEngine(child, url, onTaken);
  }

  /** Lets everything happen up to a moment. */
  async runUntil(ms: number): Promise<void> {
    this.standing = await new Promise((resolve) => {
      this.#onStanding = resolve;
      this.#child.send(ms);
    });
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
