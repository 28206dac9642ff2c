import { type Command, Option } from "commander";
import { formatCount } from "../report.js";
import { truth } from "./kinds.js";
import { flagOf, OPTIONS, type OptionName, optionOf } from "./options.js";

/** Adds the flags of options to a command. They are taken as texts: what they may be is checked where all sources are. */
export function addFlags(command: Command, names: readonly OptionName[]): void {
  command.addOption(new Option("--config <file>", "options in YAML or JSON"));
  for (const name of names) {
    for (const flag of flagsOf(name)) command.addOption(flag);
  }
}

function flagsOf(name: OptionName): Option[] {
  const { kind, description, standard, off = description } = optionOf(name);
  const flag = flagOf(name);
  if (kind === truth) {
    const yes = new Option(`--${flag}`, description).hideHelp(standard === true);
    const no = new Option(`--no-${flag}`, off).hideHelp(standard !== true);
    return [yes, no];
  }
  const option = new Option(`--${flag} <${argumentOf(name)}>`, `${description}${standardOf(name)}`);
  // Commander puts values under the name of the flag; those of a list are under the name of the option then.
  option.attributeName = () => name;
  return [isList(name) ? option.argParser(collect) : option];
}

/** Collects what a flag gives that may stand several times. */
function collect(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

const isList = (name: OptionName): boolean => Array.isArray(OPTIONS[name].standard);

function argumentOf(name: OptionName): string {
  const { standard, isSecret } = optionOf(name);
  if (name === "workers") return "url";
  if (isSecret) return "text";
  return typeof standard === "number" || standard === undefined ? "number" : "text";
}

function standardOf(name: OptionName): string {
  const { standard, standardText } = optionOf(name);
  if (standardText !== undefined) return ` (default: ${standardText.replaceAll("`", "")})`;
  if (standard === undefined) return "";
  return ` (default: ${typeof standard === "number" && name !== "port" ? formatCount(standard) : standard})`;
}
