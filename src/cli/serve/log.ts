import type { Writable } from "node:stream";
import { type Logger, pino, stdTimeFunctions } from "pino";
import { Lines } from "./lines.js";

/** A log of JSON lines. */
export interface Log {
  readonly logger: Logger;
  /** Resolves when all lines have been taken. */
  end(): Promise<void>;
}

/** Makes a log that writes one JSON object a line to a stream, with the time in ISO 8601 and the level as a word. */
export function createLog(stream: Writable, level: string): Log {
  const lines = new Lines(stream, (count) =>
    logger.warn({ lines: count }, "log lines dropped: the reader is too slow"),
  );
  const formatters = { level: (label: string) => ({ level: label }) };
  const logger: Logger = pino({ level, base: null, timestamp: stdTimeFunctions.isoTime, formatters }, lines);
  return { logger, end: () => lines.end() };
}
