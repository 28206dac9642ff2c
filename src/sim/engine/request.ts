import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import type { EngineRequest } from "./sequence.js";

/**
 * Checks what a caller asks an engine for.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE`, {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if it cannot be asked
 */
export function checkRequest(request: EngineRequest): void {
  const { promptTokens, maxTokens, answer } = request;
  checkTokens("promptTokens", promptTokens);
  if (answer !== undefined) checkTokens("answer", answer);
  if (!Number.isInteger(maxTokens) || maxTokens < 0) {
    throw new ArgumentRangeError(`Expected maxTokens to be a whole number, 0 or more, got ${String(maxTokens)}.`);
  }
}

function checkTokens(name: string, tokens: unknown): void {
  if (!(tokens instanceof Uint32Array)) throw new ArgumentTypeError(`Expected ${name} to be a Uint32Array.`);
  if (tokens.length === 0) throw new ArgumentRangeError(`Expected ${name} to hold at least one token, got none.`);
}
