import { Readable, Writable } from "node:stream";
import { run } from "../../src/cli/run.js";

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Sink extends Writable {
  text = "";

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.text += new TextDecoder().decode(chunk);
    done();
  }
}

/** Runs a command in this process. */
export async function kvroute(
  argv: readonly string[],
  world: { readonly stdin?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Outcome> {
  const stdout = new Sink();
  const stderr = new Sink();
  const code = await run({
    argv,
    env: world.env ?? {},
    stdin: Readable.from([Buffer.from(world.stdin ?? "")]),
    stdout,
    stderr,
    now: () => performance.now(),
    onSignal: () => () => undefined,
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}
