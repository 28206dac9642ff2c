import { BREAKER_COUNT_MAX, BREAKER_FAILURES_DEFAULT, BREAKER_OPEN_MS_DEFAULT } from "../../gateway/breaker.js";
import {
  HEALTH_INTERVAL_MS_MIN,
  HEALTH_PATH_DEFAULT,
  HEALTH_TIMEOUT_MS_DEFAULT,
} from "../../gateway/health-options.js";
import {
  BLOCK_BYTES_DEFAULT,
  BLOCK_BYTES_MAX,
  BODY_BYTES_DEFAULT,
  QUEUE_TIMEOUT_MS_DEFAULT,
  QUEUED_DEFAULT,
  QUEUED_MAX,
  STALL_TIMEOUT_MS_DEFAULT,
} from "../../gateway/options.js";
import { RETRY_ATTEMPTS_DEFAULT, RETRY_ATTEMPTS_MAX } from "../../gateway/retry-options.js";
import { POLICY_NAMES, type PolicyName } from "../../selection/policy.js";
import { type Kind, listOf, oneOf, text, truth, whole, zeroOr } from "./kinds.js";
import { workerList } from "./workers.js";

/** An option of `kvroute serve`. Its name in a file is its key here; its flag and its variable are made of that. */
export interface Option<T> {
  readonly kind: Kind<T>;
  readonly standard: T;
  /** The standard value in words, where it is no number or word of its own. */
  readonly standardText?: string | undefined;
  readonly description: string;
  /** What turning it off does, where it is on by default. */
  readonly off?: string | undefined;
  /** Its flag, where that is not named as the key is: an option that is a list is given one by one. */
  readonly flag?: string | undefined;
  readonly isSecret?: boolean | undefined;
}

const COUNT_MAX = 2 ** 31 - 1;
const DAY_MS = 86_400_000;
const API_KEYS_MAX = 1_024;
/** The port of another router for vLLM. Those of the engines are free then: 8000 is vLLM's, 30000 SGLang's. */
const PORT_DEFAULT = 8_001;
/** Six times as often as the library asks by itself: here it takes half a minute until an engine that is back is used. */
const HEALTH_INTERVAL_MS = 10_000;

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

const token = text("printable ASCII without spaces and commas", /^[\x21-\x2b\x2d-\x7e]{1,1024}$/);
const hostName = text("a host name or an address", /^[A-Za-z0-9._:-]{1,255}$/);
const path = text("a path that begins with a slash, without #", /^\/[\x21\x22\x24-\x7e]{0,1023}$/);
const milliseconds = whole(1, DAY_MS);
const one = <T>(option: Option<T>): Option<T> => option;

/** All options, in the order of the documentation. */
export const OPTIONS = {
  host: one({ kind: hostName, standard: "127.0.0.1", description: "address to listen at" }),
  port: one({
    kind: whole(0, 65_535),
    standard: PORT_DEFAULT,
    description: "port to listen at; 0 is any that is free",
  }),
  workers: one({
    kind: workerList,
    standard: [],
    standardText: "embedded engines",
    description: "engines, once each: where they listen, what stands before /v1",
    flag: "worker",
  }),
  embedded: one({ kind: whole(0, 16), standard: 2, description: "fake engines to start where no worker is named" }),
  policy: one<PolicyName>({
    kind: oneOf(POLICY_NAMES),
    standard: "kv",
    description: "chooses the worker of a request",
  }),
  controlToken: one<string | undefined>({
    kind: token,
    standard: undefined,
    description: "opens what changes workers to those who send it as a bearer token",
    isSecret: true,
  }),
  control: one({
    kind: truth,
    standard: true,
    description: "whether there is anything that changes workers",
    off: "let nobody change workers",
  }),
  apiKeys: one<readonly string[]>({
    kind: listOf(token, API_KEYS_MAX),
    standard: [],
    standardText: "none: open to all",
    description: "opens /v1 to those alone who send one of them",
    flag: "api-key",
    isSecret: true,
  }),
  maxInFlight: one<number | undefined>({
    kind: whole(1, COUNT_MAX),
    standard: undefined,
    standardText: "any number",
    description: "requests that are at workers at a time",
  }),
  maxQueued: one({
    kind: whole(0, QUEUED_MAX),
    standard: QUEUED_DEFAULT,
    description: "requests that wait for a worker at a time",
  }),
  queueTimeoutMs: one({ kind: milliseconds, standard: QUEUE_TIMEOUT_MS_DEFAULT, description: "how long one waits" }),
  retryAttempts: one({
    kind: whole(1, RETRY_ATTEMPTS_MAX),
    standard: RETRY_ATTEMPTS_DEFAULT,
    description: "how often a request is sent before its first byte has come; 1 is once",
  }),
  breakerFailures: one({
    kind: whole(0, BREAKER_COUNT_MAX),
    standard: BREAKER_FAILURES_DEFAULT,
    description: "failures in a row after which a worker gets nothing; 0 is never",
  }),
  breakerOpenMs: one({
    kind: milliseconds,
    standard: BREAKER_OPEN_MS_DEFAULT,
    description: "after which time it is tried again",
  }),
  firstByteTimeoutMs: one<number | undefined>({
    kind: whole(1, COUNT_MAX),
    standard: undefined,
    standardText: "as `stallTimeoutMs`",
    description: "how long a worker may take to begin its answer",
  }),
  stallTimeoutMs: one({
    kind: whole(1, COUNT_MAX),
    standard: STALL_TIMEOUT_MS_DEFAULT,
    description: "how long nothing may move in either direction",
  }),
  healthPath: one({
    kind: path,
    standard: HEALTH_PATH_DEFAULT,
    description: "what workers are asked to see whether they live",
  }),
  healthIntervalMs: one({
    kind: zeroOr(HEALTH_INTERVAL_MS_MIN, DAY_MS),
    standard: HEALTH_INTERVAL_MS,
    description: "how often they are asked; 0 is never",
  }),
  healthTimeoutMs: one({
    kind: whole(1, 600_000),
    standard: HEALTH_TIMEOUT_MS_DEFAULT,
    description: "how long they may take to say so",
  }),
  maxBodyBytes: one({
    kind: whole(1, COUNT_MAX),
    standard: BODY_BYTES_DEFAULT,
    description: "bytes of a request's body",
  }),
  blockBytes: one({
    kind: whole(4, BLOCK_BYTES_MAX, 4),
    standard: BLOCK_BYTES_DEFAULT,
    description: "bytes of prompt that are a block",
  }),
  receipts: one({
    kind: truth,
    standard: true,
    description: "headers on answers that say where they came from and why",
  }),
  forwardAffinityHeaders: one({
    kind: truth,
    standard: false,
    description: "whether headers that name sessions go to the workers",
  }),
  logLevel: one({ kind: oneOf(LOG_LEVELS), standard: "info", description: "the least that is logged" }),
  drainTimeoutMs: one({
    kind: whole(0, DAY_MS),
    standard: 30_000,
    description: "how long requests may go on after SIGTERM",
  }),
};

export type OptionName = keyof typeof OPTIONS;

/** What `kvroute serve` is configured to do. */
export type ServeConfig = { readonly [K in OptionName]: (typeof OPTIONS)[K] extends Option<infer T> ? T : never };

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** What the variables of the environment begin with. */
export const VARIABLE_PREFIX = "KVROUTE_";

/** Writes an option's name as flags have it, such as `max-in-flight`. */
export function flagOf(name: OptionName): string {
  return optionOf(name).flag ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Writes an option's name as the environment has it, such as `KVROUTE_MAX_IN_FLIGHT`. */
export function variableOf(name: OptionName): string {
  return VARIABLE_PREFIX + name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** An option whatever its kind. */
export function optionOf(name: OptionName): Option<unknown> {
  return OPTIONS[name] as Option<unknown>;
}
