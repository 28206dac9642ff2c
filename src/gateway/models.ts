import { joinBytes } from "../bytes.js";
import type { Clock } from "../clock.js";
import { UpstreamError } from "../errors.js";
import { jsonAnswer } from "./envelope.js";
import { isObject } from "./prompt/body.js";
import type { StopSignal } from "./stop.js";
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
    const lists = await Promise.all(parts.targets.slice(at, at + MODELS_PARALLEL).map((target) => ask(target, parts)));
    for (const signal of parts.signals) signal?.throwIfAborted();
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

/** Asks one worker. Gives `undefined` where it does not answer, or with no list. */
async function ask(
  target: Omit<UpstreamRequest, "signal">,
  { clock, upstream, signals }: ModelsParts,
): Promise<[string, unknown][] | undefined> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const signal of signals) signal?.addEventListener("abort", abort);
  const timer = clock.setTimeout(abort, MODELS_TIMEOUT_MS);
  try {
    const given = new Promise<never>((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason));
      if (signals.some((signal) => signal?.aborted)) abort();
    });
    return await Promise.race([read(upstream, { ...target, signal: controller.signal }), given]);
  } catch {
    return undefined;
  } finally {
    clock.clearTimeout(timer);
    for (const signal of signals) signal?.removeEventListener("abort", abort);
  }
}

async function read(upstream: Upstream, request: UpstreamRequest): Promise<[string, unknown][] | undefined> {
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
