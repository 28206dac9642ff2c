import { Argument, type Command, Option } from "commander";
import { addFlags } from "../config/flags.js";
import type { OptionName } from "../config/options.js";
import type { ExplainFlags } from "../explain/run.js";
import type { CliIo } from "../io.js";

/** The options of the server that say where a request goes, and who may ask. */
const FLAGS: readonly OptionName[] = ["workers", "embedded", "policy", "blockBytes", "maxBodyBytes", "controlToken"];

const HELP = `
Without --server nobody is asked: fake engines stand in for the workers, whose caches hold what --after says and
nothing else. The same options as those of kvroute serve give the same routing.

Exit code: 0 when a worker would have it, 1 when none would or a file cannot be read, 2 when the command is wrong.`;

/** Adds `kvroute explain` to the program. */
export function addExplain(program: Command, io: CliIo): void {
  const command = program
    .command("explain")
    .summary("show where a request would go, and why")
    .description("Shows where a request would go, and why: what each worker holds of it, and what it would cost there.")
    .addArgument(new Argument("<request>", 'the JSON body of the request: a file, or "-" for standard input'))
    .addOption(new Option("--path <path>", "what the request is sent to").default("/v1/chat/completions"))
    .addOption(
      new Option("--header <name=value>", "a header of the requests; may stand several times").argParser(collect),
    )
    .addOption(
      new Option("--after <file>", "a request that was served before, in the order given; may stand several times")
        .argParser(collect)
        .conflicts("server"),
    )
    .addOption(new Option("--server <url>", "ask a kvroute that runs, about the caches and loads that it has"));
  addFlags(command, FLAGS);
  command
    .option("--json", "print one JSON object instead of the table")
    .addHelpText("after", HELP)
    .action(async (file: string, flags: ExplainFlags) => {
      const { runExplain } = await import("../explain/run.js"); // other commands start without it
      await runExplain(file, flags, io);
    });
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
