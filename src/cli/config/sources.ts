import { OptionError } from "../../errors.js";
import type { Place } from "./kinds.js";
import { nearest } from "./nearest.js";
import { flagOf, OPTION_NAMES, type OptionName, optionOf, VARIABLE_PREFIX, variableOf } from "./options.js";

/** A value as it was given, and where. */
export interface Given {
  readonly value: unknown;
  readonly place: Place;
}

/** What one source has given. */
export type Source = ReadonlyMap<OptionName, Given>;

/** Variables of kvroute that are no options of the server. */
const OTHER_VARIABLES = ["KVROUTE_CONFIG", "KVROUTE_DEBUG"] as const;

/** What Kubernetes puts into the environment of every pod for a service that is called kvroute or kvroute-something. */
const SERVICE_LINK = /^KVROUTE(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

/** Takes what the command line has given, as commander has it: texts, lists of texts, true and false. */
export function fromFlags(flags: Readonly<Record<string, unknown>>): Source {
  return collect((name, option) => {
    const given = flags[name];
    const ofText = (text: unknown) => (typeof text === "string" ? option.kind.ofText(text) : text);
    const value = Array.isArray(given) ? given.flatMap((text) => ofText(text)) : ofText(given);
    return { value, name: value === false ? `--no-${flagOf(name)}` : `--${flagOf(name)}` };
  });
}

/**
 * Takes what the environment has given.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if a variable begins as those of kvroute do and is none
 */
export function fromEnvironment(env: Readonly<Record<string, string | undefined>>): Source {
  const known = [...OPTION_NAMES.map(variableOf), ...OTHER_VARIABLES];
  const isLink = (name: string) => SERVICE_LINK.test(name) || isServiceAddress(name, env[name]);
  for (const name of Object.keys(env)) {
    if (!name.startsWith(VARIABLE_PREFIX) || known.includes(name) || isLink(name)) continue;
    throw new OptionError(`Expected variables of kvroute, got ${name}; the nearest is ${nearest(name, known)}.`);
  }
  return collect((name, option) => {
    const text = env[variableOf(name)];
    const isGiven = text !== undefined && !isServiceAddress(variableOf(name), text);
    return { value: isGiven ? option.kind.ofText(text) : undefined, name: variableOf(name) };
  });
}

/** Whether a variable is the address of a service: Kubernetes gives one called kvroute a `KVROUTE_PORT` that is no port. */
function isServiceAddress(name: string, text: string | undefined): boolean {
  return name.endsWith("_PORT") && SERVICE_ADDRESS.test(text ?? "");
}

/**
 * Takes what a file has given.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if it has a key that is no option
 */
export function fromFile(values: Readonly<Record<string, unknown>>, path: string): Source {
  const unknown = Object.keys(values).find((key) => !OPTION_NAMES.includes(key as OptionName));
  if (unknown !== undefined) {
    const got = `${JSON.stringify(unknown.slice(0, 100))}; the nearest is "${nearest(unknown, OPTION_NAMES)}"`;
    throw new OptionError(`Expected ${path} to have known options, got ${got}.`);
  }
  return collect((name) => ({
    value: Object.hasOwn(values, name) ? values[name] : undefined,
    name: `${path}: ${name}`,
  }));
}

function collect(
  give: (name: OptionName, option: ReturnType<typeof optionOf>) => { value: unknown; name: string },
): Source {
  const source = new Map<OptionName, Given>();
  for (const option of OPTION_NAMES) {
    const { isSecret = false } = optionOf(option);
    const { value, name } = give(option, optionOf(option));
    if (value !== undefined) source.set(option, { value, place: { name, isSecret } });
  }
  return source;
}
