import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { webStreamOf } from "../node/bytes.js";
import { type CliIo, fileError } from "./io.js";

/** A trace to read, from a file or from standard input. */
export interface TraceInput {
  /** How messages call it. */
  readonly name: string;
  /** Its length where that is known, for the progress bar. */
  readonly totalBytes?: number | undefined;
  open(onBytes: (bytes: number) => void): ReadableStream<Uint8Array>;
}

/**
 * Finds a trace by its path; `-` is standard input.
 *
 * @throws {FileError} `KVROUTE_FILE` if there is no such file, here or when it is read
 */
export async function findTrace(path: string, io: CliIo): Promise<TraceInput> {
  if (path === "-") {
    const name = "standard input";
    const explain = (cause: unknown): unknown => fileError(name, cause);
    return { name, open: (onBytes) => webStreamOf(io.stdin, { onBytes, explain }) };
  }
  const explain = (cause: unknown): unknown => fileError(path, cause);
  const stats = await stat(path).catch((cause: unknown) => {
    throw explain(cause);
  });
  return {
    name: path,
    totalBytes: stats.isFile() ? stats.size : undefined,
    open: (onBytes) => webStreamOf(createReadStream(path), { onBytes, explain }),
  };
}
