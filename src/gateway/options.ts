import type { Clock } from "../clock.js";
import { describe } from "../core/describe.js";
import type { PrefixIndex } from "../core/prefix-index.js";
import { OptionError } from "../errors.js";
import { WEIGHT_MAX, WEIGHT_MIN } from "../selection/catalog/registration.js";
import { countOption, numberOption, objectOption } from "../selection/policies/numbers.js";
import { createPolicy, type Policy, type PolicyName } from "../selection/policy.js";
import { systemClock, systemRandom } from "../system.js";
import { type BreakerOptions, type BreakerSettings, breakerSettings } from "./breaker.js";
import { HeaderList } from "./header-list.js";
import { checkHeader } from "./header-text.js";
import { type HealthOptions, type HealthSettings, healthSettings } from "./health-options.js";
import type { Receipt } from "./receipt.js";
import type { RequestRecord } from "./request-log.js";
import { type RetryOptions, type RetrySettings, retrySettings } from "./retry-options.js";
import type { Upstream } from "./upstream.js";

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
  /**
   * After which time without an answer a worker has failed, in milliseconds. An answer that is not streamed begins when all
   * of it is there. 1 to 2^31 - 1, default `stallTimeoutMs`.
   */
  readonly firstByteTimeoutMs?: number | undefined;
  /** After which time a request ends whose answer has begun, if nothing moves. 1 to 2^31 - 1, default ten minutes. */
  readonly stallTimeoutMs?: number | undefined;
  /** How a request is tried again that a worker has not answered. `false`: never. */
  readonly retry?: RetryOptions | false | undefined;
  /** When a worker that fails has a rest. `false`: never. */
  readonly breaker?: BreakerOptions | false | undefined;
  /** Asks the workers for their health from the first request on. Default: nobody asks. */
  readonly health?: HealthOptions | undefined;
  /** Requests that all workers have at a time. Default: any number. */
  readonly maxInFlight?: number | undefined;
  /** Requests that wait while all workers have as many as they take. 0 to 1,000,000, default 100. */
  readonly maxQueued?: number | undefined;
  /** How long one waits, in milliseconds. 1 to 2^31 - 1, default one minute. */
  readonly queueTimeoutMs?: number | undefined;
  /** Whether answers say in headers where they come from. Default true. */
  readonly receipts?: boolean | undefined;
  /** Is told where each request is sent, and what each worker would have cost. */
  readonly onDecision?: ((receipt: Receipt) => void) | undefined;
  /** Is told what became of each request. */
  readonly onRequest?: ((record: RequestRecord) => void) | undefined;
  /** Is told of what goes wrong without failing a request. */
  readonly onWarning?: ((warning: RouterWarning) => void) | undefined;
  /** Whether headers that name sessions go to the workers. Default false. */
  readonly forwardAffinityHeaders?: boolean | undefined;
  /** What workers are believed to hold. Default: an index of the router's own. */
  readonly index?: PrefixIndex | undefined;
  /** Reaches the workers in place of the runtime's `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Reaches the workers in place of any `fetch`. */
  readonly upstream?: Upstream | undefined;
}

/** What goes wrong without failing a request. */
export interface RouterWarning {
  /** Stays the same, for programs. */
  readonly name: string;
  readonly message: string;
  /** The worker that it is about, where it is about one. */
  readonly worker?: string | undefined;
}

/** What a router tells those who have asked, by the name of the option. */
export interface RouterNews {
  onDecision: Receipt;
  onRequest: RequestRecord;
  onWarning: RouterWarning;
}

/** The options of a router, checked, with their defaults. */
export interface RouterSettings {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxBodyBytes: number;
  readonly blockBytes: number;
  readonly firstByteTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly retry: RetrySettings | undefined;
  readonly breaker: BreakerSettings | undefined;
  readonly health: HealthSettings | undefined;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  readonly queueTimeoutMs: number;
  readonly receipts: boolean;
  readonly forwardAffinityHeaders: boolean;
  readonly onDecision: ((receipt: Receipt) => void) | undefined;
  readonly onRequest: ((record: RequestRecord) => void) | undefined;
  /** Tells whoever has asked. What is thrown there is a warning, and fails no request. */
  readonly tell: <Name extends keyof RouterNews>(name: Name, news: RouterNews[Name]) => void;
  readonly index: PrefixIndex | undefined;
  /** Without one, `fetch` reaches the workers. */
  readonly upstream: Upstream | undefined;
  readonly fetch: RouterOptions["fetch"];
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

/** Bytes of a token before anything is known of a model, and always for the sizes that workers are compared by. */
export const BYTES_PER_TOKEN = 4;
export const BODY_BYTES_DEFAULT = 33_554_432;
export const BLOCK_BYTES_DEFAULT = 256;
export const BLOCK_BYTES_MAX = 16_384;
export const STALL_TIMEOUT_MS_DEFAULT = 600_000;
export const QUEUED_DEFAULT = 100;
export const QUEUED_MAX = 1_000_000;
export const QUEUE_TIMEOUT_MS_DEFAULT = 60_000;
/** Models that one worker may name. */
export const WORKER_MODELS_MAX = 4_096;
const NAME_LENGTH_MAX = 1_024;
const COUNT_MAX = 2 ** 31 - 1;

/**
 * Checks the options of a router but its workers, and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function routerSettings(options: RouterOptions): RouterSettings {
  const stallTimeoutMs = countOption(
    "stallTimeoutMs",
    options.stallTimeoutMs ?? STALL_TIMEOUT_MS_DEFAULT,
    1,
    COUNT_MAX,
  );
  const { policy = "kv", clock = systemClock, random = systemRandom } = options;
  const { blockBytes = BLOCK_BYTES_DEFAULT, index } = options;
  countOption("blockBytes", blockBytes, BYTES_PER_TOKEN, BLOCK_BYTES_MAX);
  if (blockBytes % BYTES_PER_TOKEN !== 0) {
    throw new OptionError(`Expected blockBytes to be a multiple of ${BYTES_PER_TOKEN}, got ${blockBytes}.`);
  }
  for (const name of ["onDecision", "onRequest", "onWarning"] as const) {
    if (options[name] !== undefined) checkFunction(name, options[name]);
  }
  checkFunction("random", random);
  for (const name of ["now", "setTimeout", "clearTimeout"] as const) checkFunction(`clock.${name}`, clock?.[name]);
  return {
    policy: policyOf(policy),
    clock,
    random,
    maxBodyBytes: countOption("maxBodyBytes", options.maxBodyBytes ?? BODY_BYTES_DEFAULT, 1, COUNT_MAX),
    blockBytes,
    firstByteTimeoutMs: countOption("firstByteTimeoutMs", options.firstByteTimeoutMs ?? stallTimeoutMs, 1, COUNT_MAX),
    stallTimeoutMs,
    retry: options.retry === false ? undefined : retrySettings(options.retry),
    breaker: options.breaker === false ? undefined : breakerSettings(options.breaker),
    health: options.health === undefined ? undefined : healthSettings(options.health),
    maxInFlight: limit("maxInFlight", options.maxInFlight),
    maxQueued: countOption("maxQueued", options.maxQueued ?? QUEUED_DEFAULT, 0, QUEUED_MAX),
    queueTimeoutMs: countOption("queueTimeoutMs", options.queueTimeoutMs ?? QUEUE_TIMEOUT_MS_DEFAULT, 1, COUNT_MAX),
    receipts: flag("receipts", options.receipts ?? true),
    forwardAffinityHeaders: flag("forwardAffinityHeaders", options.forwardAffinityHeaders ?? false),
    index,
    ...reachOf(options),
    onDecision: options.onDecision,
    onRequest: options.onRequest,
    tell: tellerOf(options),
  };
}

function reachOf({ upstream, fetch }: RouterOptions): Pick<RouterSettings, "upstream" | "fetch"> {
  if (fetch !== undefined) checkFunction("fetch", fetch);
  if (upstream !== undefined) checkFunction("upstream.send", upstream?.send);
  if (upstream !== undefined && fetch !== undefined) throw new OptionError("Expected fetch or upstream, got both.");
  return { upstream, fetch };
}

/** Makes what tells whoever has asked. */
function tellerOf(options: RouterOptions): RouterSettings["tell"] {
  const tell: RouterSettings["tell"] = (name, news) => {
    const listener = options[name] as ((value: typeof news) => unknown) | undefined;
    const onThrown = (error: unknown) => {
      if (name === "onWarning") return; // nobody is left to be told
      const message = `Expected ${name} to take what it is told, but it threw: ${describe(error)}.`;
      tell("onWarning", { name: "KVROUTE_WARNING_LISTENER", message });
    };
    try {
      const told = listener?.(news);
      if (told instanceof Promise) told.catch(onThrown);
    } catch (error) {
      onThrown(error);
    }
  };
  return tell;
}

/**
 * Checks the options of a worker and fills in what is absent.
 *
 * @param place names the worker in errors, such as `workers[0]`
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function workerSettings(options: WorkerOptions, place: string): WorkerSettings {
  objectOption(place, options);
  const { models, headers, maxInFlight, weight = 1 } = options;
  numberOption(`${place}.weight`, weight, WEIGHT_MIN, WEIGHT_MAX);
  return {
    id: name(`${place}.id`, options.id),
    url: urlOf(`${place}.url`, options.url),
    models: models === undefined ? undefined : modelsOf(`${place}.models`, models),
    headers: headers === undefined ? undefined : headersOf(`${place}.headers`, headers),
    maxInFlight: limit(`${place}.maxInFlight`, maxInFlight),
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
    if (typeof headers === "object" && headers !== null) {
      const list = HeaderList.of(new Headers(headers as Record<string, string>));
      for (const [name, value] of list) checkHeader(name, value); // of values, `Headers` lets pass what cannot be sent
      return list;
    }
  } catch {
    throw new OptionError(`Expected ${option} to have names and values that headers can have.`); // they may be secret
  }
  throw new OptionError(`Expected ${option} to be an object of names and values, got ${describe(headers)}.`);
}

function name(option: string, value: unknown): string {
  const isLong = typeof value === "string" && value.length > NAME_LENGTH_MAX;
  // Of halves of characters UTF-8 makes the same: two workers would be one in the metrics.
  if (typeof value === "string" && value !== "" && !isLong && !/\p{Surrogate}/u.test(value)) return value;
  const got = isLong ? `one of ${(value as string).length}` : describe(value);
  throw new OptionError(`Expected ${option} to be a string of 1 to ${NAME_LENGTH_MAX} characters, got ${got}.`);
}

/** A number of requests, endless where there is none. */
function limit(option: string, value: unknown): number {
  return value === undefined ? Number.POSITIVE_INFINITY : countOption(option, value, 1, COUNT_MAX);
}

function flag(option: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new OptionError(`Expected ${option} to be true or false, got ${describe(value)}.`);
}

function checkFunction(option: string, value: unknown): void {
  if (typeof value !== "function") {
    throw new OptionError(`Expected ${option} to be a function, got ${describe(value)}.`);
  }
}
