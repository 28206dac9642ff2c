import type { Clock } from "../clock.js";
import { describe } from "../core/describe.js";
import type { PrefixIndex } from "../core/prefix-index.js";
import { OptionError } from "../errors.js";
import { WEIGHT_MAX, WEIGHT_MIN } from "../selection/catalog/registration.js";
import { createPolicy, type Policy, type PolicyName } from "../selection/policy.js";
import { systemClock, systemRandom } from "../system.js";
import { HeaderList } from "./header-list.js";
import { fetchUpstream, type Upstream } from "./upstream.js";

/** An engine behind an HTTP interface of OpenAI's or Anthropic's. */
export interface WorkerOptions {
  readonly id: string;
  /** Where it listens, such as `http://10.0.0.1:8000`: what stands before `/v1`. */
  readonly url: string;
  /** The models that it serves, adapters included. Default: any. */
  readonly models?: readonly string[] | undefined;
  /** Headers for every request to it. With them, the credentials of callers stay here. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Requests that it has at a time. Default: any number. */
  readonly maxInFlight?: number | undefined;
  /** How much it can do beside the others. 0.000001 to 1,000,000, default 1. */
  readonly weight?: number | undefined;
}

export interface RouterOptions {
  readonly workers: readonly WorkerOptions[];
  /** Chooses among workers. Default `"kv"`. */
  readonly policy?: Policy | PolicyName | undefined;
  /** Default: the clock of the runtime. */
  readonly clock?: Clock | undefined;
  /** Default: the randomness of the runtime. */
  readonly random?: (() => number) | undefined;
  /** Bytes of a request's body. 1 to 2^31 - 1, default 32 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Bytes of prompt that are a block. A multiple of 4 from 4 to 16,384, default 256. */
  readonly blockBytes?: number | undefined;
  /** After which time without a byte, in either direction, a request ends. 1 to 2^31 - 1, default ten minutes. */
  readonly stallTimeoutMs?: number | undefined;
  /** Whether headers that name sessions go to the workers. Default false. */
  readonly forwardAffinityHeaders?: boolean | undefined;
  /** What workers are believed to hold. Default: an index of the router's own. */
  readonly index?: PrefixIndex | undefined;
  /** Reaches the workers in place of the runtime's `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

/** The options of a router, checked, with their defaults. */
export interface RouterSettings {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxBodyBytes: number;
  readonly blockBytes: number;
  readonly stallTimeoutMs: number;
  readonly forwardAffinityHeaders: boolean;
  readonly index: PrefixIndex | undefined;
  readonly upstream: Upstream;
}

/** The options of a worker, checked, with their defaults. */
export interface WorkerSettings {
  readonly id: string;
  readonly url: string;
  readonly models: ReadonlySet<string> | undefined;
  readonly headers: HeaderList | undefined;
  readonly maxInFlight: number;
  readonly weight: number;
}

export const BODY_BYTES_DEFAULT = 33_554_432;
export const BLOCK_BYTES_DEFAULT = 256;
export const BLOCK_BYTES_MAX = 16_384;
export const STALL_TIMEOUT_MS_DEFAULT = 600_000;
/** Models that one worker may name. */
export const WORKER_MODELS_MAX = 4_096;
const NAME_LENGTH_MAX = 1_024;
const COUNT_MAX = 2 ** 31 - 1;
const BYTES_PER_BLOCK_TOKEN = 4;

/**
 * Checks the options of a router but its workers, and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function routerSettings(options: RouterOptions): RouterSettings {
  const { policy = "kv", clock = systemClock, random = systemRandom, forwardAffinityHeaders = false } = options;
  const { blockBytes = BLOCK_BYTES_DEFAULT, index } = options;
  count("blockBytes", blockBytes, BYTES_PER_BLOCK_TOKEN, BLOCK_BYTES_MAX);
  if (blockBytes % BYTES_PER_BLOCK_TOKEN !== 0) {
    throw new OptionError(`Expected blockBytes to be a multiple of ${BYTES_PER_BLOCK_TOKEN}, got ${blockBytes}.`);
  }
  if (typeof forwardAffinityHeaders !== "boolean") {
    throw new OptionError(
      `Expected forwardAffinityHeaders to be true or false, got ${describe(forwardAffinityHeaders)}.`,
    );
  }
  if (options.fetch !== undefined) checkFunction("fetch", options.fetch);
  checkFunction("random", random);
  for (const name of ["now", "setTimeout", "clearTimeout"] as const) checkFunction(`clock.${name}`, clock?.[name]);
  return {
    policy: policyOf(policy),
    clock,
    random,
    maxBodyBytes: count("maxBodyBytes", options.maxBodyBytes ?? BODY_BYTES_DEFAULT, 1, COUNT_MAX),
    blockBytes,
    stallTimeoutMs: count("stallTimeoutMs", options.stallTimeoutMs ?? STALL_TIMEOUT_MS_DEFAULT, 1, COUNT_MAX),
    forwardAffinityHeaders,
    index,
    upstream: fetchUpstream(options.fetch),
  };
}

/**
 * Checks the options of a worker and fills in what is absent.
 *
 * @param place names the worker in errors, such as `workers[0]`
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function workerSettings(options: WorkerOptions, place: string): WorkerSettings {
  if (typeof options !== "object" || options === null) {
    throw new OptionError(`Expected ${place} to be an object, got ${describe(options)}.`);
  }
  const { models, headers, maxInFlight, weight = 1 } = options;
  if (!(typeof weight === "number" && weight >= WEIGHT_MIN && weight <= WEIGHT_MAX)) {
    const range = `a number from ${WEIGHT_MIN} to ${WEIGHT_MAX}`;
    throw new OptionError(`Expected ${place}.weight to be ${range}, got ${describe(weight)}.`);
  }
  return {
    id: name(`${place}.id`, options.id),
    url: urlOf(`${place}.url`, options.url),
    models: models === undefined ? undefined : modelsOf(`${place}.models`, models),
    headers: headers === undefined ? undefined : headersOf(`${place}.headers`, headers),
    maxInFlight:
      maxInFlight === undefined ? Number.POSITIVE_INFINITY : count(`${place}.maxInFlight`, maxInFlight, 1, COUNT_MAX),
    weight,
  };
}

function policyOf(policy: Policy | PolicyName): Policy {
  if (typeof policy === "string") return createPolicy(policy);
  if (typeof policy?.choose === "function" && typeof policy.name === "string") return policy;
  throw new OptionError(`Expected policy to be the name of one or to have a name and choose, got ${describe(policy)}.`);
}

function urlOf(option: string, url: unknown): string {
  const parsed = typeof url === "string" && url.length <= NAME_LENGTH_MAX ? parse(url) : undefined;
  const isUsable = /^https?:$/.test(parsed?.protocol ?? "") && parsed?.search === "" && parsed.hash === "";
  if (parsed !== undefined && (parsed.username !== "" || parsed.password !== "")) {
    throw new OptionError(`Expected ${option} to be without credentials, got some; headers can hold them.`);
  }
  if (parsed === undefined || !isUsable) {
    const what = "an http or https URL without query and fragment";
    throw new OptionError(`Expected ${option} to be ${what}, got ${describe(url)}.`);
  }
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "").replace(/\/v1$/, "")}`;
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

function modelsOf(option: string, models: unknown): ReadonlySet<string> {
  if (!Array.isArray(models) || models.length === 0 || models.length > WORKER_MODELS_MAX) {
    const got = Array.isArray(models) ? `one of ${models.length}` : describe(models);
    throw new OptionError(`Expected ${option} to be a list of 1 to ${WORKER_MODELS_MAX} models, got ${got}.`);
  }
  return new Set(models.map((model, index) => name(`${option}[${index}]`, model)));
}

function headersOf(option: string, headers: unknown): HeaderList {
  try {
    if (typeof headers === "object" && headers !== null)
      return HeaderList.of(new Headers(headers as Record<string, string>));
  } catch {
    throw new OptionError(`Expected ${option} to have names and values that headers can have.`); // they may be secret
  }
  throw new OptionError(`Expected ${option} to be an object of names and values, got ${describe(headers)}.`);
}

function name(option: string, value: unknown): string {
  if (typeof value === "string" && value !== "" && value.length <= NAME_LENGTH_MAX) return value;
  const got = typeof value === "string" && value !== "" ? `one of ${value.length}` : describe(value);
  throw new OptionError(`Expected ${option} to be a string of 1 to ${NAME_LENGTH_MAX} characters, got ${got}.`);
}

function count(option: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  throw new OptionError(`Expected ${option} to be a whole number from ${least} to ${most}, got ${describe(value)}.`);
}

function checkFunction(option: string, value: unknown): void {
  if (typeof value !== "function") {
    throw new OptionError(`Expected ${option} to be a function, got ${describe(value)}.`);
  }
}
