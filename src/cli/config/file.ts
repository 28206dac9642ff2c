import { createReadStream } from "node:fs";
import { type Document, parseDocument } from "yaml";
import { OptionError } from "../../errors.js";
import { fileError } from "../io.js";

/** Bytes of a configuration file. */
export const CONFIG_BYTES_MAX = 1_048_576;

/**
 * Reads a configuration file, YAML or JSON.
 *
 * @throws {FileError} `KVROUTE_FILE` if it cannot be read
 * @throws {OptionError} `KVROUTE_OPTION` if it is no mapping of names to values
 */
export async function readConfigFile(path: string): Promise<Readonly<Record<string, unknown>>> {
  return parseConfig(await readText(path), path);
}

/**
 * Parses the text of a configuration file. What is wrong with it is told by its place alone: the text may hold secrets.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if it is no mapping of names to values
 */
export function parseConfig(text: string, path: string): Readonly<Record<string, unknown>> {
  const value = contentOf(documentOf(text, path), path);
  if (value === null || value === undefined) return {}; // nothing but comments
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new OptionError(`Expected ${path} to be a mapping of names to values, got ${kindOf(value)}.`);
}

function documentOf(text: string, path: string): Document.Parsed {
  let document: Document.Parsed;
  try {
    document = parseDocument(text, { logLevel: "silent", stringKeys: true });
  } catch {
    throw new OptionError(`Expected ${path} to be YAML or JSON, got what cannot be parsed.`); // say, nested too deep
  }
  const [error] = document.errors;
  if (error === undefined) return document;
  const { line, col } = error.linePos?.[0] ?? { line: 1, col: 1 };
  const what = error.code.toLowerCase().replaceAll("_", " ");
  throw new OptionError(`Expected ${path} to be YAML or JSON, got a fault in line ${line}, column ${col}: ${what}.`);
}

function contentOf(document: Document.Parsed, path: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw new OptionError(`Expected ${path} to be YAML or JSON, got aliases that lead nowhere or too far.`);
  }
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? "a list" : `a ${typeof value}`);

async function readText(path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > CONFIG_BYTES_MAX) break; // whatever the system says of its size: it may be a pipe
      chunks.push(chunk);
    }
  } catch (cause) {
    throw fileError(path, cause);
  }
  if (length > CONFIG_BYTES_MAX) {
    throw new OptionError(`Expected ${path} to have at most ${CONFIG_BYTES_MAX} bytes, got more.`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new OptionError(`Expected ${path} to be UTF-8, got other bytes.`);
  }
}
