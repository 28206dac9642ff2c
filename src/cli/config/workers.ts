import { OptionError } from "../../errors.js";
import { type WorkerOptions, workerSettings } from "../../gateway/options.js";
import { type Kind, type Place, refusal } from "./kinds.js";
import { nearest } from "./nearest.js";

/** Workers that a configuration may name. */
const WORKERS_MAX = 1_024;
const FIELDS = ["id", "url", "models", "headers", "maxInFlight", "weight"] as const;

/** Workers: URLs, `id=URL`, or, in a file, objects with the options of a worker. */
export const workerList: Kind<readonly WorkerOptions[]> = {
  range: "URLs, `id=URL`; in a file also objects",
  ofText: (text) => text.split(",").map((one) => one.trim()),
  read(value, place) {
    if (!Array.isArray(value) || value.length === 0 || value.length > WORKERS_MAX) {
      const got = Array.isArray(value) ? `one of ${value.length}` : undefined;
      throw refusal(place, `a list of 1 to ${WORKERS_MAX} workers`, value, got);
    }
    const workers = value.map((one, index) => workerOf(one, { ...place, name: `${place.name}[${index}]` }));
    refuseTwins(workers, place);
    return workers;
  },
};

function workerOf(value: unknown, place: Place): WorkerOptions {
  if (typeof value === "string") return ofText(value, place);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refusal(place, "a URL, or an object with the url of a worker", value);
  }
  const unknown = Object.keys(value).find((key) => !FIELDS.includes(key as never));
  if (unknown !== undefined) {
    const got = `${JSON.stringify(unknown)}; the nearest is ${JSON.stringify(nearest(unknown, FIELDS))}`;
    throw new OptionError(`Expected ${place.name} to have the options of a worker, got ${got}.`);
  }
  return checked(value, place);
}

/** Reads `URL` or `id=URL`. */
function ofText(text: string, place: Place): WorkerOptions {
  const [, id, url = text] = /^([^=:/]+)=(.*)$/.exec(text) ?? [];
  return checked(id === undefined ? { url } : { id, url }, place);
}

/** Checks the options of a worker, and gives one without an id that of its URL. */
function checked(value: object, place: Place): WorkerOptions {
  const { url } = value as { url?: unknown };
  if (typeof url === "string" && /\/\/[^/]*@/.test(url)) {
    throw new OptionError(`Expected ${place.name}.url to be without credentials, got some; headers can hold them.`);
  }
  const { headers } = value as { headers?: unknown };
  if (headers !== undefined && !isTexts(headers)) {
    throw new OptionError(`Expected ${place.name}.headers to be an object of texts, got something else.`);
  }
  const settings = workerSettings({ id: "-", ...value } as WorkerOptions, place.name);
  return { ...(value as WorkerOptions), id: (value as WorkerOptions).id ?? idOf(settings.url), url: settings.url };
}

function isTexts(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((one) => typeof one === "string");
}

/** Names a worker by its host and port, and its path where it has one. */
function idOf(url: string): string {
  return url.replace(/^https?:\/\//, "");
}

/** Two workers at one address are one engine that is counted twice. */
function refuseTwins(workers: readonly WorkerOptions[], place: Place): void {
  for (const field of ["id", "url"] as const) {
    const seen = new Set<string>();
    for (const worker of workers) {
      if (seen.has(worker[field])) {
        throw new OptionError(`Expected the ${field}s of ${place.name} to differ, got "${worker[field]}" twice.`);
      }
      seen.add(worker[field]);
    }
  }
}
