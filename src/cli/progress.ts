import { SingleBar } from "cli-progress";
import type { CliIo } from "./io.js";

export interface Progress {
  advance(bytes: number): void;
  stop(): void;
}

const NO_PROGRESS: Progress = { advance: () => undefined, stop: () => undefined };

/** Shows on a terminal how much of a known number of bytes has been read; draws nothing in a pipe. */
export function startProgress(stderr: CliIo["stderr"], totalBytes: number | undefined): Progress {
  if (stderr.isTTY !== true || totalBytes === undefined) return NO_PROGRESS;
  const bar = new SingleBar({
    stream: stderr,
    format: "Replaying [{bar}] {percentage} %, {eta_formatted} left",
    barCompleteChar: "=",
    barIncompleteChar: " ",
    clearOnComplete: true,
  });
  bar.start(totalBytes, 0);
  return { advance: (bytes) => bar.increment(bytes), stop: () => bar.stop() };
}
