import { BlockList, isIP } from "node:net";
import { OptionError } from "../../errors.js";
import { readConfigFile } from "./file.js";
import { OPTION_NAMES, type OptionName, optionOf, type ServeConfig } from "./options.js";
import { fromEnvironment, fromFile, fromFlags, type Source } from "./sources.js";

/** A configuration, and where each of its values was given: nowhere where it is the default. */
export interface Configured {
  readonly config: ServeConfig;
  readonly places: ReadonlyMap<OptionName, string>;
}

/** The places that configure kvroute. */
export interface ConfigSources {
  /** The options as commander has read them. */
  readonly flags: Readonly<Record<string, unknown>> & { readonly config?: string | undefined };
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads the configuration: flags before the environment before the file before the defaults.
 *
 * @throws {OptionError} `KVROUTE_OPTION` for what is wrong in any of them, overridden or not
 * @throws {FileError} `KVROUTE_FILE` if the file cannot be read
 */
export async function readConfig({ flags, env }: ConfigSources): Promise<Configured> {
  const path = flags.config ?? env["KVROUTE_CONFIG"];
  if (path === "") throw new OptionError("Expected KVROUTE_CONFIG or --config to be the path of a file, got nothing.");
  const file: Source = path === undefined ? new Map() : fromFile(await readConfigFile(path), path);
  return merge([fromFlags(flags), fromEnvironment(env), file]);
}

/** Puts sources together, the first first, and checks all that they give. */
export function merge(sources: readonly Source[]): Configured {
  const values: Partial<Record<OptionName, unknown>> = {};
  const places = new Map<OptionName, string>();
  for (const name of OPTION_NAMES) {
    const { kind, standard } = optionOf(name);
    values[name] = standard;
    for (const source of [...sources].reverse()) {
      const given = source.get(name);
      if (given === undefined) continue;
      values[name] = kind.read(given.value, given.place);
      places.set(name, given.place.name);
    }
  }
  return { config: values as ServeConfig, places };
}

/**
 * Checks what a server needs beyond the values by themselves.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if two values do not go together
 */
export function checkServer({ config, places }: Configured): void {
  const { host, control, controlToken, workers, embedded } = config;
  if (!isLoopback(host) && control && controlToken === undefined) {
    const got = `host ${host} (${places.get("host")}) and neither`;
    throw new OptionError(
      `Expected --control-token, or --no-control, where others than this machine can connect, got ${got}.`,
    );
  }
  if (workers.length > 0 && places.has("embedded") && embedded > 0) {
    const named = `${workers.length} (${places.get("workers")}) and ${embedded} (${places.get("embedded")})`;
    throw new OptionError(`Expected workers or embedded engines, not both, got ${named}.`);
  }
  if (workers.length === 0 && embedded === 0 && (!control || controlToken === undefined)) {
    throw new OptionError(
      "Expected --worker, --embedded above 0, or --control-token to add workers with, got none of them.",
    );
  }
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Whether only this machine reaches a host. A name but "localhost" may lead anywhere. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === "localhost";
  return loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}
