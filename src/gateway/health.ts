import type { Clock } from "../clock.js";
import { HeaderList } from "./header-list.js";
import type { HealthSettings } from "./health-options.js";
import { jittered } from "./retry.js";
import type { StopSignal } from "./stop.js";
import type { AnswerBody } from "./types.js";
import type { Upstream, UpstreamRequest } from "./upstream.js";

/** Checks that run at a time. */
export const HEALTH_PARALLEL = 32;
/** Bytes that are read of an answer, so that its connection can serve again; of a longer one the rest is cancelled. */
export const HEALTH_BODY_BYTES_MAX = 65_536;

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
