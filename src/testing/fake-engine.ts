import { EngineError, OptionError } from "../errors.js";
import { Engine, type EngineStats, type KvMessage } from "../sim/engine.js";
import { systemClock } from "../system.js";
import { Answering } from "./answering.js";
import { readBody, untilAborted } from "./body.js";
import { Closing } from "./closing.js";
import { EitherSignal } from "./either-signal.js";
import { BrokenOff, checkFault, type Fault, faultOf } from "./faults.js";
import { type Body, isBody } from "./fields.js";
import { badRequest, errorResponse, HttpError } from "./http-error.js";
import { metricsText } from "./metrics.js";
import { checkFakeLimits, type FakeCall, type FakeEngineOptions, type FakeLimits } from "./options.js";
import { Recent } from "./recent.js";
import { wordToken } from "./tokenizer.js";

/** An engine that speaks HTTP as vLLM does and computes nothing. */
export interface FakeEngine {
  /** Answers a request. It can be handed to a client as its `fetch`, or to a server as its handler. */
  readonly fetch: (input: Request | string | URL, init?: RequestInit) => Promise<Response>;
  /** What the engine has counted, and how it stands. */
  stats(): EngineStats;
  /** The last calls, oldest first. */
  readonly calls: readonly FakeCall[];
  /** Appends to the script of faults, one entry a request. */
  fail(...faults: readonly (Fault | null)[]): void;
  /** Has a listener told of the KV cache. Returns how to stop that. */
  onKvEvents(listener: (message: KvMessage) => void): () => void;
  /** The kept messages about the KV cache from a number on. */
  kvMessages(from?: number): KvMessage[];
  /** Ends everything: requests under way break off. */
  dispose(): void;
}

/**
 * Makes an engine for tests: the scheduler and KV cache of vLLM behind the HTTP interfaces of OpenAI and Anthropic.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option lies outside its range
 */
export function createFakeEngine(options: FakeEngineOptions = {}): FakeEngine {
  return new Server(options);
}

class Server implements FakeEngine {
  readonly #engine: Engine;
  readonly #options: FakeEngineOptions;
  readonly #answering: Answering;
  readonly #models: readonly string[];
  readonly #calls: Recent<FakeCall>;
  readonly #kvMessages: Recent<KvMessage>;
  readonly #script: (Fault | null)[] = [];
  readonly #limits: FakeLimits;
  readonly #closed = new Closing();

  constructor(options: FakeEngineOptions) {
    const { clock = systemClock, models = ["fake-model"], loras = [], faults } = options;
    if (models.length === 0) throw new OptionError("Expected at least one model, got none.");
    this.#limits = checkFakeLimits(options);
    this.#engine = new Engine(clock, { ...options, nextToken: wordToken });
    this.#options = options;
    this.#models = [...models, ...loras];
    this.#answering = new Answering(this.#engine, clock, options, this.#limits);
    this.#calls = new Recent(this.#limits.maxCalls);
    this.#kvMessages = new Recent(this.#limits.maxKvMessages);
    this.#engine.onKvEvents((message) => this.#kvMessages.add(message));
    if (typeof faults !== "function") this.fail(...(faults ?? []));
  }

  readonly fetch = async (input: Request | string | URL, init?: RequestInit): Promise<Response> => {
    const request =
      typeof input === "object" && "headers" in input && init === undefined ? input : new Request(input, init);
    const { pathname } = new URL(request.url);
    const signal = new EitherSignal(request.signal, this.#closed);
    try {
      signal.throwIfAborted();
      return await this.#route(request, pathname, signal);
    } catch (error) {
      const known = knownError(error);
      if (known !== null) return errorResponse(known, pathname === "/v1/messages");
      throw error;
    }
  };

  stats(): EngineStats {
    return this.#engine.stats();
  }

  get calls(): readonly FakeCall[] {
    return this.#calls.list();
  }

  fail(...faults: readonly (Fault | null)[]): void {
    const most = this.#limits.maxFaults;
    if (this.#script.length + faults.length > most) {
      throw new OptionError(`Expected at most ${most} faults, got ${this.#script.length + faults.length}.`);
    }
    this.#script.push(...faults.map((fault) => (fault === null ? null : checkFault(fault))));
  }

  onKvEvents(listener: (message: KvMessage) => void): () => void {
    return this.#engine.onKvEvents(listener);
  }

  kvMessages(from = 0): KvMessage[] {
    return this.#kvMessages.list().filter(({ seq }) => seq >= from);
  }

  dispose(): void {
    this.#closed.abort(new BrokenOff("The engine was closed."));
    this.#engine.dispose();
  }

  async #route(request: Request, path: string, signal: EitherSignal): Promise<Response> {
    if (request.method === "GET") return this.#get(path);
    const dialect = this.#answering.dialectOf(path);
    if (dialect === undefined) throw notFound(path);
    if (request.method !== "POST")
      throw new HttpError(405, "MethodNotAllowed", `Expected POST, got ${request.method}.`);
    const bytes = await readBody(request, this.#limits.maxBodyBytes);
    const received = { method: request.method, path, headers: new Headers(request.headers), bytes };
    const body = parse(bytes);
    const call: FakeCall = { ...received, body: body ?? {} };
    this.#calls.add(call);
    const fault = this.#faultOf(call);
    if (fault?.kind === "refuse") throw new BrokenOff("fetch failed", { cause: { code: "ECONNREFUSED" } });
    if (fault?.kind === "hang") return untilAborted(signal);
    if (fault?.kind === "status") throw faultError(fault.status, fault.message, fault.retryAfterSeconds);
    if (body === undefined) throw badRequest("Expected a body that is an object in JSON.");
    return this.#answering.answer(dialect, call, fault, signal);
  }

  #get(path: string): Response {
    if (path === "/health" || path === "/ping") return new Response(null, { status: 200 });
    if (path === "/metrics") {
      const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
      return new Response(metricsText(this.stats(), this.#models[0] as string), { headers });
    }
    if (path !== "/v1/models") throw notFound(path);
    const data = this.#models.map((id) => ({
      ...{ id, object: "model", created: 0, owned_by: "kvroute", root: id, parent: null },
      max_model_len: this.#engine.limits.maxModelLen,
    }));
    return Response.json({ object: "list", data });
  }

  /** What goes wrong with a call: what the client asks for, or what the script says. */
  #faultOf(call: FakeCall): Fault | undefined {
    const asked = faultOf(call.headers);
    if (asked !== undefined) return asked;
    const { faults } = this.#options;
    const scripted = this.#script.shift();
    if (scripted !== undefined || typeof faults !== "function") return scripted ?? undefined;
    const fault = faults(call) ?? undefined;
    return fault === undefined ? undefined : checkFault(fault);
  }
}

const decoder = /* @__PURE__ */ new TextDecoder();

function parse(bytes: Uint8Array): Body | undefined {
  try {
    const body: unknown = JSON.parse(decoder.decode(bytes));
    return isBody(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Gives the error that the client is told; `null` for one that it is not told of. */
function knownError(error: unknown): HttpError | null {
  if (error instanceof HttpError) return error;
  if (!(error instanceof EngineError) || error.status === undefined) return null;
  const type = error.status === 400 ? "BadRequestError" : "ServiceUnavailableError";
  return new HttpError(error.status, type, error.message);
}

function notFound(path: string): HttpError {
  return new HttpError(404, "NotFoundError", `Expected a path that the engine serves, got ${path}.`);
}

function faultError(status: number, message = "It fails, as it was told to.", retryAfterSeconds?: number): HttpError {
  const type = status === 429 ? "RateLimitError" : status >= 500 ? "InternalServerError" : "BadRequestError";
  return new HttpError(status, type, message, retryAfterSeconds);
}
