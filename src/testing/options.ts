import type { Clock } from "../clock.js";
import { countOption } from "../sim/engine/options.js";
import type { EngineOptions } from "../sim/engine.js";
import type { ToolCall } from "./dialect.js";
import type { Fault } from "./faults.js";
import type { Body } from "./fields.js";

/** A request as a fake engine received it. */
export interface FakeCall {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The body as it came. */
  readonly bytes: Uint8Array;
  /** The body read as JSON, an empty object where there is none. */
  readonly body: Body;
}

/** What to answer: a text, or a call of a function. */
export type FakeAnswer = string | ToolCall;

export interface FakeEngineOptions extends Omit<EngineOptions, "nextToken"> {
  /** What ids of answers begin with, so that those of several engines differ. Default "fake". */
  readonly name?: string | undefined;
  /** The models that it serves; the first is the base model. Default ["fake-model"]. */
  readonly models?: readonly string[] | undefined;
  /** Adapters, which are asked for as models. Default none. */
  readonly loras?: readonly string[] | undefined;
  /** What it answers; `undefined` is made up: words that hang on the prompt alone. */
  readonly answer?: ((call: FakeCall) => FakeAnswer | undefined) | undefined;
  /** Tokens of an answer that is made up, unless the client wants fewer, or says `ignore_eos`. Default 16. */
  readonly outputTokens?: number | undefined;
  /** What goes wrong: a script, one entry a request, `null` for none; or a function that says so. Default nothing. */
  readonly faults?: readonly (Fault | null)[] | ((call: FakeCall) => Fault | null | undefined) | undefined;
  /** Faults that a script may hold. Default 10,000. */
  readonly maxFaults?: number | undefined;
  /** Bytes of a request's body. Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Calls that `calls` keeps, the last ones. Default 100. */
  readonly maxCalls?: number | undefined;
  /** Messages about the KV cache that `kvMessages` keeps, the last ones. Default 10,000, as in vLLM. */
  readonly maxKvMessages?: number | undefined;
  /** Responses that `previous_response_id` can name, the last ones. Default 1,024. */
  readonly maxStoredResponses?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** Options that are counts, with the defaults filled in. */
export interface FakeLimits {
  readonly outputTokens: number;
  readonly maxFaults: number;
  readonly maxBodyBytes: number;
  readonly maxCalls: number;
  readonly maxKvMessages: number;
  readonly maxStoredResponses: number;
}

const COUNT_MAX = 2 ** 31 - 1;

/**
 * Checks the options that are counts.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if one lies outside its range
 */
export function checkFakeLimits(options: FakeEngineOptions): FakeLimits {
  const count = (name: keyof FakeLimits, standard: number, least = 0) =>
    countOption(name, options[name] ?? standard, least, COUNT_MAX);
  return {
    outputTokens: count("outputTokens", 16, 1),
    maxFaults: count("maxFaults", 10_000),
    maxBodyBytes: count("maxBodyBytes", 32 * 2 ** 20),
    maxCalls: count("maxCalls", 100),
    maxKvMessages: count("maxKvMessages", 10_000),
    maxStoredResponses: count("maxStoredResponses", 1_024),
  };
}
