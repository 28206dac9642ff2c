import { readBytes } from "../../bytes.js";
import type { WorkerOptions } from "../../gateway/options.js";

const TIMEOUT_MS = 2_000;
const BYTES_MAX = 1_048_576;
const ASKED_MAX = 8;

/** Finds a model that some worker serves, for an example of a request; `undefined` where none says so soon. */
export async function findModel(workers: readonly WorkerOptions[], signal: AbortSignal): Promise<string | undefined> {
  const named = workers.find(({ models }) => models !== undefined)?.models?.[0];
  if (named !== undefined) return named;
  const soon = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  return Promise.any(workers.slice(0, ASKED_MAX).map((worker) => ask(worker, soon))).catch(() => undefined);
}

async function ask({ url, headers = {} }: WorkerOptions, signal: AbortSignal): Promise<string> {
  const { ok, body } = await fetch(`${url}/v1/models`, { headers, signal, redirect: "error" });
  if (!ok || body === null) throw new Error("The worker has not listed its models.");
  const text = new TextDecoder().decode(await readBytes(body, BYTES_MAX, () => new Error("The list is too long.")));
  const { data } = JSON.parse(text) as { data: { id: unknown }[] };
  const id = data[0]?.id;
  if (typeof id !== "string") throw new Error("The worker has listed no model.");
  return id;
}
