import { Command, CommanderError } from "commander";
import { CorePanicError, KvrouteError, OptionError } from "../errors.js";
import { addDemo } from "./commands/demo.js";
import { addExplain } from "./commands/explain.js";
import { addGenerate } from "./commands/generate.js";
import { addReplay } from "./commands/replay.js";
import { addServe } from "./commands/serve.js";
import { type CliIo, systemCode, write } from "./io.js";
import { VERSION } from "./version.js";

/** What the program returns to its caller. */
export const ExitCode = { Ok: 0, BadInput: 1, Usage: 2, Bug: 70 } as const;

/**
 * Runs one command.
 *
 * @returns the exit code: 0, 1 for bad input, 2 for a wrong command, 70 for a fault of the program itself, whose stack
 *   is shown if the environment sets `KVROUTE_DEBUG`. Whatever went wrong is one line on standard error.
 */
export async function run(io: CliIo): Promise<number> {
  const said: Said = { out: "", err: "" };
  const program = createProgram(io, said);
  try {
    const code = await parse(program, io);
    if (said.out !== "") await write(io.stdout, said.out);
    if (said.err !== "") await write(io.stderr, said.err);
    return code;
  } catch (error) {
    return await explain(error, io);
  }
}

/** What commander has to say. It is written when commander has returned, so that a failed write has an answer. */
interface Said {
  out: string;
  err: string;
}

function createProgram(io: CliIo, said: Said): Command {
  const program = new Command("kvroute")
    .description("Routes LLM requests by what each engine's KV cache holds and how busy it is.")
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => {
        said.out += text;
      },
      writeErr: (text) => {
        said.err += text;
      },
      outputError: (text) => {
        said.err += complaint(text);
      },
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  addServe(program, io);
  addExplain(program, io);
  addReplay(program, io);
  addGenerate(program, io);
  addDemo(program, io);
  return program;
}

/** Parses the arguments and runs what they say. Commander reports help and wrong arguments by throwing. */
async function parse(program: Command, io: CliIo): Promise<number> {
  try {
    await program.parseAsync(io.argv, { from: "user" });
    return ExitCode.Ok;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? ExitCode.Ok : ExitCode.Usage;
  }
}

/** Reports an error and finds its exit code. */
async function explain(error: unknown, io: CliIo): Promise<number> {
  if (systemCode(error) === "EPIPE") return ExitCode.Ok; // the reader has seen enough
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof KvrouteError && !(error instanceof CorePanicError)) {
    await complain(io, message);
    return error instanceof OptionError ? ExitCode.Usage : ExitCode.BadInput;
  }
  const isDebug = (io.env["KVROUTE_DEBUG"] ?? "") !== "";
  if (isDebug && error instanceof Error) await write(io.stderr, `${error.stack ?? message}\n`);
  else await complain(io, `unexpected error: ${message} (KVROUTE_DEBUG=1 shows where)`);
  return ExitCode.Bug;
}

async function complain(io: CliIo, text: string): Promise<void> {
  await write(io.stderr, complaint(text)).catch(() => undefined); // nobody is left to be told
}

/** Makes one line of what went wrong. */
function complaint(text: string): string {
  const line = text
    .trim()
    .replace(/^error: /, "")
    .replace(/^(unknown option '[^'=]*)=[^']*/, "$1"); // that may be a secret
  return `kvroute: ${line.replace(/\s*\n\s*/g, " ")}\n`;
}
