import type { Readable, Writable } from "node:stream";
import { FileError } from "../errors.js";

/** What the command line has of the world. */
export interface CliIo {
  /** The arguments, without the names of the runtime and of the program. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined };
  /** Reads a monotonic clock in milliseconds. */
  now(): number;
  /** Is told of every signal that asks to stop, which ends nothing by itself then. Gives back how to go away. */
  onSignal(listener: () => void): () => void;
}

/** Writes a text and waits until it has been taken. */
export function write(stream: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EISDIR: "is a directory",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on the device",
};

/** Turns what the system says about a file into one line that names it. */
export function fileError(path: string, cause: unknown): FileError {
  const code = systemCode(cause);
  return new FileError(path, PROBLEMS[code ?? ""] ?? (cause instanceof Error ? cause.message : String(cause)), {
    cause,
  });
}

/** Reads the code of a system error, such as `ENOENT`. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
