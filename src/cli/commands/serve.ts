import type { Command } from "commander";
import { addFlags } from "../config/flags.js";
import { OPTION_NAMES } from "../config/options.js";
import type { CliIo } from "../io.js";

const HELP = `
Each option is also a variable, such as KVROUTE_MAX_IN_FLIGHT, and a key of the file, such as maxInFlight. Flags
go before variables, variables before the file. Keys belong into variables or the file: others can see flags.

Exit code: 0 when it was stopped and all requests had ended, 1 when it could not listen or broke requests off,
2 when the configuration is wrong.`;

/** Adds `kvroute serve` to the program. */
export function addServe(program: Command, io: CliIo): void {
  const command = program
    .command("serve")
    .summary("route requests to your engines")
    .description(
      "Listens for requests in the HTTP of OpenAI and Anthropic, and sends each to the best of your engines.",
    );
  addFlags(command, OPTION_NAMES);
  command.addHelpText("after", HELP).action(async (flags: Record<string, unknown>) => {
    const { runServer } = await import("../serve/run.js"); // other commands start without it
    await runServer(flags, io);
  });
}
