import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Command, Option } from "commander";
import {
  formatRow,
  generateTrace,
  type MooncakeRow,
  REQUESTS_MAX,
  REQUESTS_PER_SECOND_DEFAULT,
  REQUESTS_PER_SECOND_MAX,
  SYSTEM_PROMPTS_DEFAULT,
  SYSTEM_PROMPTS_MAX,
} from "../../sim/generate.js";
import { generateStress, STRESS_NAMES, STRESS_PREFILL_RATE, type StressName } from "../../sim/stress.js";
import { type CliIo, fileError, write } from "../io.js";
import { formatCount } from "../report.js";
import { count, decimal, stress } from "../values.js";

interface GenerateSettings {
  readonly requests: number;
  readonly seed: number;
  readonly systemPrompts: number;
  readonly rate: number;
  readonly stress?: StressName | undefined;
  readonly output: string;
}

const REQUESTS_DEFAULT = 10_000;
const PIECE_CHARACTERS = 65_536; // written at a time: a write a row would be slow

const HELP = `
The trace has the form of the Mooncake traces: conversations of several turns, each of which sends the whole
history again, behind system prompts of which few are popular and many are rare. The same seed gives the same
trace everywhere.`;

/** Adds `kvroute generate` to the program. */
export function addGenerate(program: Command, io: CliIo): void {
  const seeds = count(0, Number.MAX_SAFE_INTEGER);
  const systemPrompts = count(1, SYSTEM_PROMPTS_MAX);
  const rates = decimal(0, REQUESTS_PER_SECOND_MAX, true);
  program
    .command("generate")
    .summary("write a made-up trace of conversations")
    .description("Writes a made-up trace of conversations, for kvroute replay.")
    .option("--requests <count>", "rows to write", count(1, REQUESTS_MAX), REQUESTS_DEFAULT)
    .option("--seed <number>", "decides everything that is random", seeds, 0)
    .option("--system-prompts <count>", "different system prompts", systemPrompts, SYSTEM_PROMPTS_DEFAULT)
    .option("--rate <number>", "requests per second, on average", rates, REQUESTS_PER_SECOND_DEFAULT)
    .addOption(
      new Option("--stress <name>", `a stress trace instead: ${STRESS_NAMES.join(", ")}`)
        .argParser(stress)
        .conflicts(["requests", "systemPrompts", "rate"]),
    )
    .option("--output <file>", 'where to write; gzipped if the name ends in .gz; "-" is standard output', "-")
    .addHelpText("after", HELP)
    .action(async (settings: GenerateSettings) => {
      const { output } = settings;
      let rows = 0;
      const counted = function* (): Generator<MooncakeRow, void, undefined> {
        for (const row of rowsOf(settings)) {
          rows++;
          yield row;
        }
      };
      const pieces = Readable.from(tracePieces(counted()));
      if (output === "-") {
        await pipeline(pieces, io.stdout, { end: false });
        return;
      }
      await writeFile(pieces, output);
      const rate = settings.stress === undefined ? "" : ` --prefill-rate ${STRESS_PREFILL_RATE}`;
      await write(io.stdout, `Wrote ${formatCount(rows)} requests. Next: npx kvroute replay ${output}${rate}\n`);
    });
}

function rowsOf(settings: GenerateSettings): Iterable<MooncakeRow> {
  const { requests, seed, systemPrompts, rate: requestsPerSecond } = settings;
  if (settings.stress !== undefined) return generateStress(settings.stress, { seed });
  return generateTrace({ requests, seed, systemPrompts, requestsPerSecond });
}

async function writeFile(pieces: Readable, path: string): Promise<void> {
  const file = createWriteStream(path);
  try {
    if (path.endsWith(".gz")) await pipeline(pieces, createGzip(), file);
    else await pipeline(pieces, file);
  } catch (cause) {
    throw fileError(path, cause);
  }
}

/** Yields the rows of a trace as UTF-8 in pieces of a good size for writing. */
export function* tracePieces(rows: Iterable<MooncakeRow>): Generator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  let piece = "";
  for (const row of rows) {
    piece += formatRow(row);
    if (piece.length < PIECE_CHARACTERS) continue;
    yield encoder.encode(piece);
    piece = "";
  }
  if (piece !== "") yield encoder.encode(piece);
}
