import { readBytes } from "../../bytes.js";
import { FileError, OptionError } from "../../errors.js";
import type { RouteExplanation } from "../../gateway/explain.js";
import { readConfig } from "../config/config.js";
import type { OPTIONS } from "../config/options.js";
import { findTrace } from "../input.js";
import { type CliIo, write } from "../io.js";
import { embeddedNames } from "../serve/embedded-names.js";
import { type Asked, rehearse } from "./rehearsal.js";
import { askServer } from "./remote.js";
import { formatExplanation } from "./text.js";

/** What the command line says, beside the options of a server. */
export interface ExplainFlags extends Readonly<Record<string, unknown>> {
  readonly path: string;
  readonly header?: readonly string[] | undefined;
  readonly after?: readonly string[] | undefined;
  readonly server?: string | undefined;
  readonly json?: boolean | undefined;
  readonly config?: string | undefined;
}

const AFTER_MAX = 10_000;
const HEADERS_MAX = 100;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * Shows where the request of a file would go, and why.
 *
 * @throws {KvrouteError} whatever is wrong with the configuration, a file or the request
 */
export async function runExplain(file: string, flags: ExplainFlags, io: CliIo): Promise<void> {
  const explanation = await explain(file, flags, io);
  const text = flags.json ? `${JSON.stringify(explanation)}\n` : formatExplanation(flags.path, explanation);
  await write(io.stdout, text);
}

async function explain(file: string, flags: ExplainFlags, io: CliIo): Promise<RouteExplanation> {
  const { config, places } = await readConfig({ flags, env: io.env });
  if (!/^\/v1\/./.test(flags.path)) {
    throw new OptionError(`Expected --path to be below /v1/, got ${JSON.stringify(flags.path)}.`);
  }
  const headers = headersOf(flags.header ?? []);
  const ask = async (name: string): Promise<Asked> => ({
    name,
    path: flags.path,
    headers: [["content-type", "application/json"], ...headers],
    bytes: await read(name, config.maxBodyBytes, io),
  });
  const asked = await ask(file);
  if (flags.server !== undefined) {
    for (const name of ["workers", "embedded", "policy", "blockBytes"] as const) {
      if (!places.get(name)?.startsWith("--")) continue;
      throw new OptionError(`Expected --server or ${places.get(name)}, not both: the server has options of its own.`);
    }
    return askServer(flags.server, config.controlToken, asked);
  }
  const { after = [] } = flags;
  if (after.length > AFTER_MAX)
    throw new OptionError(`Expected ${AFTER_MAX} files at most (--after), got ${after.length}.`);
  const earlier: Asked[] = [];
  for (const name of after) earlier.push(await ask(name));
  return rehearse(config, workersOf(config), earlier, asked);
}

/** Names workers that nobody has named, as the server would. */
function workersOf({ workers, embedded }: { [K in "workers" | "embedded"]: (typeof OPTIONS)[K]["standard"] }) {
  if (workers.length > 0) return workers;
  return embeddedNames(embedded).map((id) => ({ id, url: `http://${id}` }));
}

async function read(path: string, maxBytes: number, io: CliIo): Promise<Uint8Array> {
  const input = await findTrace(path, io);
  const tooLong = () => new FileError(input.name, `has more than ${maxBytes} bytes (--max-body-bytes)`);
  return readBytes(
    input.open(() => undefined),
    maxBytes,
    tooLong,
  );
}

/** Reads headers, in lower case. One that is wrong is named by its place alone: its value may be a secret. */
function headersOf(texts: readonly string[]): (readonly [string, string])[] {
  if (texts.length > HEADERS_MAX)
    throw new OptionError(`Expected ${HEADERS_MAX} headers at most, got ${texts.length}.`);
  return texts.map((text, index) => {
    const [, name, value] = HEADER.exec(text) ?? [];
    if (name !== undefined && value !== undefined) return [name.toLowerCase(), value];
    throw new OptionError(
      `Expected --header[${index}] to be the name and value of a header, name=value, got another text.`,
    );
  });
}
