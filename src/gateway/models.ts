import { joinBytes } from "../bytes.js";
import type { Clock } from "../clock.js";
import { UpstreamError } from "../errors.js";
import { jsonAnswer } from "./envelope.js";
import { isObject } from "./prompt/body.js";
import { abortable, Stop, type StopSignal } from "./stop.js";
import { ANSWER_BYTES_MAX } from "./stream.js";
import type { Answer, AnswerBody } from "./types.js";
import type { Upstream, UpstreamRequest } from "./upstream.js";

/** How long a worker may take to list its models: the list is made of those that are there by then. */
export const MODELS_TIMEOUT_MS = 5_000;
/** Workers that are asked at a time. */
export const MODELS_PARALLEL = 32;
/** Models in a list. */
export const MODELS_LISTED_MAX = 10_000;

/** What listing takes. */
export interface ModelsParts {
  readonly clock: Clock;
  readonly upstream: Upstream;
  /** End it. */
  readonly signals: readonly (StopSignal | undefined)[];
  readonly targets: readonly Omit<UpstreamRequest, "signal">[];
}

/**
 * Lists the models of all workers, each once, as the first worker that has it describes it.
 *
 * @throws {UpstreamError} `KVROUTE_UPSTREAM_UNREACHABLE` if no worker lists any
 */
export async function listModels(parts: ModelsParts): Promise<Answer> {
  const models = new Map<string, unknown>();
  let answered = 0;
  for (let at = 0; at < parts.targets.length; at += MODELS_PARALLEL) {
    const lists = await askAll(parts.targets.slice(at, at + MODELS_PARALLEL), parts);
    for (const list of lists) {
      if (list === undefined) continue;
      answered++;
      for (const [id, model] of list) if (!models.has(id) && models.size < MODELS_LISTED_MAX) models.set(id, model);
    }
  }
  if (answered === 0) {
    const message = `Expected a worker that lists its models, but none of ${parts.targets.length} does.`;
    throw new UpstreamError("KVROUTE_UPSTREAM_UNREACHABLE", message);
  }
  const bytes = new TextEncoder().encode(JSON.stringify({ object: "list", data: [...models.values()] }));
  return jsonAnswer(200, bytes);
}

type Models = [string, unknown][] | undefined;

/** Asks some workers at a time. Rejects with the reason of the first signal that aborts. */
async function askAll(targets: ModelsParts["targets"], parts: ModelsParts): Promise<Models[]> {
  const { signals } = parts;
  const gone = new Stop(); // one listener of the caller's signal, however many are asked
  const end = () => gone.abort(signals.find((signal) => signal?.aborted)?.reason);
  for (const signal of signals) signal?.addEventListener("abort", end);
  if (signals.some((signal) => signal?.aborted)) end();
  try {
    const lists = await Promise.all(targets.map((target) => ask(target, parts, gone)));
    gone.throwIfAborted();
    return lists;
  } finally {
    for (const signal of signals) signal?.removeEventListener("abort", end);
  }
}

/** Asks one worker. Gives `undefined` where it does not answer in time, or with no list. */
async function ask(
  target: ModelsParts["targets"][number],
  { clock, upstream }: ModelsParts,
  gone: StopSignal,
): Promise<Models> {
  const stop = new Stop();
  const end = () => stop.abort(gone.reason);
  const timer = clock.setTimeout(end, MODELS_TIMEOUT_MS);
  gone.addEventListener("abort", end);
  if (gone.aborted) end();
  try {
    return await abortable(read(upstream, { ...target, signal: stop }), stop);
  } catch {
    return undefined;
  } finally {
    clock.clearTimeout(timer);
    gone.removeEventListener("abort", end);
  }
}

async function read(upstream: Upstream, request: UpstreamRequest): Promise<Models> {
  const { status, body } = await upstream.send(request);
  const bytes = body === undefined ? undefined : await readAll(body);
  if (status !== 200 || bytes === undefined) return undefined;
  const list: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isObject(list) || !Array.isArray(list["data"])) return undefined;
  return list["data"].flatMap((model: unknown): [string, unknown][] =>
    isObject(model) && typeof model["id"] === "string" ? [[model["id"], model]] : [],
  );
}

/** Reads a body whole, `undefined` for one that is too long. */
async function readAll(body: AnswerBody): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) {
      await body.cancel();
      return undefined;
    }
    chunks.push(chunk);
  }
  return joinBytes(chunks);
}
