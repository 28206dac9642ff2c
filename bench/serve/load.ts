import { bodiesOf } from "./bodies.js";

const PATH = "/v1/chat/completions";

/** What clients do: how long their prompts are, and what answers they ask for. */
export interface Scene {
  readonly bytes: number;
  readonly isStream: boolean;
}

export interface Load extends Scene {
  readonly url: string;
  readonly connections: number;
  /** How long it lasts, or how many requests it has. */
  readonly duration: { readonly seconds: number } | { readonly requests: number };
}

/** What came of a load. */
export interface Measured {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Loads a server with as many requests as it answers. */
export async function load({ url, connections, duration, bytes, isStream }: Load): Promise<Measured> {
  const { default: autocannon } = await import("autocannon"); // every process has this module, and one has clients
  const headers = { "content-type": "application/json", authorization: "Bearer key" };
  const requests = bodiesOf(bytes, isStream).map((body) => ({ method: "POST" as const, path: PATH, headers, body }));
  const limit = "seconds" in duration ? { duration: duration.seconds } : { amount: duration.requests };
  const result = await autocannon({ url, connections, requests, ...limit });
  const { non2xx, errors, latency } = result;
  if (non2xx > 0 || errors > 0)
    throw new Error(`Expected answers alone, got ${non2xx} and ${errors} others of ${url}.`);
  const { total } = result.requests;
  return { requests: total, perSecond: total / result.duration, p50Ms: latency.p50, p99Ms: latency.p99 };
}

/** Asks once, and gives all of the answer. */
export async function ask(url: string, { bytes, isStream }: Scene): Promise<string> {
  const body = bodiesOf(bytes, isStream)[0] as string;
  const response = await fetch(url + PATH, { method: "POST", headers: { "content-type": "application/json" }, body });
  return `${response.status} ${response.headers.get("content-type")} ${await response.text()}`;
}
