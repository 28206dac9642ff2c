import type { Clock } from "../clock.js";
import type { Engine } from "../sim/engine.js";
import { encodeEvent, spoil, streamOf, waitFor } from "./body.js";
import type { Dialect, Reply, ToolCall } from "./dialect.js";
import { chat } from "./dialects/chat.js";
import { completions } from "./dialects/completions.js";
import { embeddings } from "./dialects/embeddings.js";
import { messages } from "./dialects/messages.js";
import { Responses } from "./dialects/responses.js";
import type { EitherSignal } from "./either-signal.js";
import type { Fault } from "./faults.js";
import { readText } from "./fields.js";
import { Generation, type Job } from "./generation.js";
import { badRequest, HttpError } from "./http-error.js";
import type { FakeAnswer, FakeCall, FakeEngineOptions, FakeLimits } from "./options.js";
import { encodeText } from "./tokenizer.js";

const encoder = /* @__PURE__ */ new TextEncoder();

/** What a forced call of a function gets for its arguments. */
const NO_ARGUMENTS = "{}";

/** Has the engine answer requests, and puts the answers into the words of their protocols. */
export class Answering {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #options: FakeEngineOptions;
  readonly #outputTokens: number;
  readonly #dialects: Readonly<Record<string, Dialect>>;
  readonly #models: readonly string[];
  readonly #loras: readonly string[];
  #ids = 0;

  constructor(engine: Engine, clock: Clock, options: FakeEngineOptions, limits: FakeLimits) {
    this.#outputTokens = limits.outputTokens;
    this.#engine = engine;
    this.#clock = clock;
    this.#options = options;
    this.#models = options.models ?? ["fake-model"];
    this.#loras = options.loras ?? [];
    this.#dialects = {
      "/v1/chat/completions": chat,
      "/v1/completions": completions,
      "/v1/responses": new Responses(limits.maxStoredResponses),
      "/v1/messages": messages,
      "/v1/embeddings": embeddings,
    };
  }

  dialectOf(path: string): Dialect | undefined {
    return Object.hasOwn(this.#dialects, path) ? this.#dialects[path] : undefined;
  }

  /**
   * Answers a call.
   *
   * @throws {HttpError} where the answer is an error
   */
  async answer(dialect: Dialect, call: FakeCall, fault: Fault | undefined, signal: EitherSignal): Promise<Response> {
    const reply = this.#start(dialect, call);
    const abort = () => {
      for (const generation of reply.generations) generation.abort();
    };
    const wait = (ms: number) => waitFor(this.#clock, signal, ms);
    try {
      if (fault?.kind === "slow") await wait(fault.delayMs);
      const isStream = call.body["stream"] === true && dialect.events !== undefined;
      const type = isStream ? "text/event-stream; charset=utf-8" : "application/json";
      const chunks = fault?.kind === "garbage" ? garbage() : isStream ? events(dialect, reply) : whole(dialect, reply);
      const body = streamOf(spoil(chunks, fault, wait), signal, abort);
      if (isStream || fault !== undefined) return new Response(body, { headers: { "content-type": type } });
      return new Response(await new Response(body).arrayBuffer(), { headers: { "content-type": type } });
    } catch (error) {
      abort();
      throw error;
    }
  }

  #start(dialect: Dialect, call: FakeCall): Reply {
    const { body } = call;
    const model = readText(body, "model") ?? (this.#models[0] as string);
    const isLora = this.#loras.includes(model);
    if (!isLora && !this.#models.includes(model)) {
      throw new HttpError(404, "NotFoundError", `The model \`${model}\` does not exist.`);
    }
    const { prompts, maxTokens, forcedTool } = dialect.read(body);
    const answer = this.#answerOf(call, forcedTool);
    const isEndless = body["ignore_eos"] === true && maxTokens !== undefined;
    const job: Omit<Job, "prompt"> = {
      maxTokens,
      answer: isEndless || maxTokens === 0 ? undefined : tokensOf(answer),
      naturalTokens: maxTokens === 0 || isEndless ? maxTokens : this.#outputTokens,
      loraName: isLora ? model : undefined,
      cacheSalt: readText(body, "cache_salt"),
    };
    const id = `${dialect.idPrefix}${this.#options.name ?? "fake"}-${++this.#ids}`;
    const created = Math.floor(this.#clock.now() / 1000);
    const toolCall = typeof answer === "object" && !isEndless ? answer : undefined;
    return { id, created, model, body, generations: this.#generate(prompts, job), toolCall };
  }

  #answerOf(call: FakeCall, forcedTool: string | undefined): FakeAnswer | undefined {
    const answer = this.#options.answer?.(call);
    if (answer !== undefined || forcedTool === undefined) return answer;
    const forced: ToolCall = { name: forcedTool, arguments: NO_ARGUMENTS };
    return forced;
  }

  /** Submits all prompts or none. */
  #generate(prompts: readonly Uint32Array[], job: Omit<Job, "prompt">): Generation[] {
    const generations: Generation[] = [];
    try {
      for (const prompt of prompts) generations.push(new Generation(this.#engine, { ...job, prompt }));
    } catch (error) {
      for (const generation of generations) generation.abort();
      throw error;
    }
    return generations;
  }
}

function tokensOf(answer: FakeAnswer | undefined): Uint32Array | undefined {
  if (answer === undefined) return undefined;
  const tokens = encodeText(typeof answer === "string" ? answer : answer.arguments);
  if (tokens.length > 0) return tokens;
  throw badRequest("Expected an answer of at least one character, got none.");
}

async function* events(dialect: Dialect, reply: Reply): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const event of dialect.events?.(reply) ?? []) yield encodeEvent(event);
}

async function* whole(dialect: Dialect, reply: Reply): AsyncGenerator<Uint8Array, void, undefined> {
  const texts = await Promise.all(reply.generations.map((generation) => generation.text()));
  yield encoder.encode(JSON.stringify(dialect.whole(reply, texts)));
}

async function* garbage(): AsyncGenerator<Uint8Array, void, undefined> {
  yield encoder.encode('<html><body>data: {"half": "an answer</body></html>\n\n');
}
