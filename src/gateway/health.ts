import type { Clock } from "../clock.js";
import { describe } from "../core/describe.js";
import { OptionError } from "../errors.js";
import { countOption, numberOption, objectOption } from "../selection/policies/numbers.js";
import { HeaderList } from "./header-list.js";
import { JITTER_DEFAULT, jittered } from "./retry.js";
import type { StopSignal } from "./stop.js";
import type { AnswerBody } from "./types.js";
import type { Upstream, UpstreamRequest } from "./upstream.js";

/** How workers are asked whether they are well. */
export interface HealthOptions {
  /** What is asked for at each worker. Default `/health`. */
  readonly path?: string | undefined;
  /** How long after a check the next one comes. 100 to 86,400,000, default a minute. */
  readonly intervalMs?: number | undefined;
  /** How long a check may take. 1 to 600,000, default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Failed checks in a row that make a worker unhealthy. 1 to 1,000, default 3. */
  readonly failures?: number | undefined;
  /** Good checks in a row that make a worker healthy. 1 to 1,000, default 2. */
  readonly successes?: number | undefined;
  /** Which share of the interval is left to chance, to either side. 0 to 1, default 0.2. */
  readonly jitter?: number | undefined;
}

/** The options of health checks, checked, with their defaults. */
export type HealthSettings = { readonly [Name in keyof HealthOptions]-?: NonNullable<HealthOptions[Name]> };

export const HEALTH_PATH_DEFAULT = "/health";
export const HEALTH_INTERVAL_MS_DEFAULT = 60_000;
export const HEALTH_INTERVAL_MS_MIN = 100;
export const HEALTH_TIMEOUT_MS_DEFAULT = 5_000;
export const HEALTH_FAILURES_DEFAULT = 3;
export const HEALTH_SUCCESSES_DEFAULT = 2;
/** Checks that run at a time. */
export const HEALTH_PARALLEL = 32;
/** Bytes that are read of an answer, so that its connection can serve again; of a longer one the rest is cancelled. */
export const HEALTH_BODY_BYTES_MAX = 65_536;
const PATH_LENGTH_MAX = 1_024;
const INTERVAL_MS_MAX = 86_400_000;
const TIMEOUT_MS_MAX = 600_000;
const COUNT_MAX = 1_000;

/**
 * Checks the options of health checks and fills in what is absent.
 *
 * @throws {OptionError} `KVROUTE_OPTION` with a sentence that names the option
 */
export function healthSettings(options: HealthOptions = {}): HealthSettings {
  objectOption("health", options);
  const { path = HEALTH_PATH_DEFAULT, jitter = JITTER_DEFAULT } = options;
  const { intervalMs = HEALTH_INTERVAL_MS_DEFAULT, timeoutMs = HEALTH_TIMEOUT_MS_DEFAULT } = options;
  const { failures = HEALTH_FAILURES_DEFAULT, successes = HEALTH_SUCCESSES_DEFAULT } = options;
  if (typeof path !== "string" || path.length > PATH_LENGTH_MAX || !/^\/[^\s#]*$/.test(path)) {
    const what = `a path of at most ${PATH_LENGTH_MAX} characters that begins with /`;
    throw new OptionError(`Expected health.path to be ${what}, got ${describe(path)}.`);
  }
  return {
    path,
    intervalMs: countOption("health.intervalMs", intervalMs, HEALTH_INTERVAL_MS_MIN, INTERVAL_MS_MAX),
    timeoutMs: countOption("health.timeoutMs", timeoutMs, 1, TIMEOUT_MS_MAX),
    failures: countOption("health.failures", failures, 1, COUNT_MAX),
    successes: countOption("health.successes", successes, 1, COUNT_MAX),
    jitter: numberOption("health.jitter", jitter, 0, 1),
  };
}

/** A worker to be checked, as a router has it. */
export interface HealthTarget {
  readonly id: string;
  readonly url: string;
  /** Headers for every request to it, credentials among them. */
  readonly headers?: HeaderList | undefined;
}

/** What is known of a worker: nothing as yet, or what its last checks agree in. */
export type HealthState = "unknown" | "healthy" | "unhealthy";

/** What health checks are made with. */
export interface HealthParts {
  readonly settings: HealthSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly upstream: Upstream;
  /** Is told when a worker becomes healthy or unhealthy, also where nothing was known before. */
  readonly onChange: (id: string, isHealthy: boolean) => void;
}

class Patient {
  readonly target: HealthTarget;
  state: HealthState = "unknown";
  /** The last result, and how often it came in a row. */
  isGood = false;
  run = 0;
  timer: unknown;
  check: AbortController | undefined;

  constructor(target: HealthTarget) {
    this.target = target;
  }
}

/** Asks the workers of a set, each by itself and never twice at a time, whether they are well. */
export class HealthChecks {
  readonly #parts: HealthParts;
  readonly #patients = new Map<string, Patient>();
  /** Those whose time has come while as many checks ran as may. */
  readonly #waiting = new Set<Patient>();
  #running = 0;
  #isStarted = false;
  #isClosed = false;

  /** Sets no timer: `start` does. */
  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  /** Begins to check: each worker for the first time within the jitter's share of the interval. Once is enough. */
  start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    for (const patient of this.#patients.values()) this.#scheduleFirst(patient);
  }

  /** Adds a worker, in the place of one of the same id. */
  add(target: HealthTarget): void {
    if (this.#isClosed) return;
    this.remove(target.id);
    const patient = new Patient(target);
    this.#patients.set(target.id, patient);
    if (this.#isStarted) this.#scheduleFirst(patient);
  }

  /** Removes a worker, if it is there, and ends its check. */
  remove(id: string): void {
    const patient = this.#patients.get(id);
    if (patient === undefined) return;
    this.#patients.delete(id);
    this.#waiting.delete(patient);
    this.#parts.clock.clearTimeout(patient.timer);
    patient.check?.abort();
  }

  /** Ends all checks. There are none afterwards. */
  close(): void {
    this.#isClosed = true;
    for (const id of [...this.#patients.keys()]) this.remove(id);
  }

  /** Gives what is known of a worker; of one that is not there, nothing is. */
  state(id: string): HealthState {
    return this.#patients.get(id)?.state ?? "unknown";
  }

  /** Whether nothing speaks against giving the worker requests. */
  isUsable(id: string): boolean {
    return this.state(id) !== "unhealthy";
  }

  #scheduleFirst(patient: Patient): void {
    const { settings, random } = this.#parts;
    this.#schedule(patient, settings.intervalMs * settings.jitter * random());
  }

  #schedule(patient: Patient, delayMs: number): void {
    patient.timer = this.#parts.clock.setTimeout(() => {
      this.#waiting.add(patient);
      this.#next();
    }, delayMs);
  }

  #next(): void {
    for (const patient of this.#waiting) {
      if (this.#running >= HEALTH_PARALLEL) return;
      this.#waiting.delete(patient);
      void this.#check(patient);
    }
  }

  async #check(patient: Patient): Promise<void> {
    const { settings, clock, random, upstream } = this.#parts;
    const { id, url, headers } = patient.target;
    const check = new AbortController();
    patient.check = check;
    this.#running++;
    const timer = clock.setTimeout(() => check.abort(), settings.timeoutMs);
    const request = { method: "GET", url: `${url}${settings.path}`, headers: HeaderList.of(headers) };
    const isGood = await ask(upstream, { ...request, signal: check.signal });
    clock.clearTimeout(timer);
    patient.check = undefined;
    this.#running--;
    const isThere = this.#patients.get(id) === patient;
    if (isThere) this.#schedule(patient, jittered(settings.intervalMs, settings.jitter, random));
    this.#next();
    if (isThere) this.#note(patient, isGood);
  }

  #note(patient: Patient, isGood: boolean): void {
    const { settings, onChange } = this.#parts;
    patient.run = patient.isGood === isGood ? patient.run + 1 : 1;
    patient.isGood = isGood;
    const state = isGood ? "healthy" : "unhealthy";
    if (patient.state === state || patient.run < (isGood ? settings.successes : settings.failures)) return;
    patient.state = state;
    onChange(patient.target.id, isGood);
  }
}

/** Asks a worker. Only an answer of 2xx that came whole, or as far as it is read, before the signal is good. */
function ask(upstream: Upstream, request: UpstreamRequest): Promise<boolean> {
  const { signal } = request;
  return new Promise((resolve) => {
    const giveUp = () => resolve(false); // at once, also where the upstream does not hear the signal
    signal.addEventListener("abort", giveUp);
    answer(upstream, request)
      .then(resolve, giveUp)
      .finally(() => signal.removeEventListener("abort", giveUp));
  });
}

async function answer(upstream: Upstream, request: UpstreamRequest): Promise<boolean> {
  const { signal } = request;
  const { status, body } = await upstream.send(request);
  if (body !== undefined) await drain(body, signal);
  return status >= 200 && status < 300;
}

async function drain(body: AnswerBody, signal: StopSignal): Promise<void> {
  const cancel = () => void body.cancel(signal.reason).catch(nothing);
  if (signal.aborted) return cancel();
  signal.addEventListener("abort", cancel);
  try {
    let length = 0;
    for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) {
      length += chunk.length;
      if (length > HEALTH_BODY_BYTES_MAX) return cancel();
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

function nothing(): void {}
