import { describe } from "../../core/describe.js";
import { hashSequence } from "../../core/token-hash.js";
import { ArgumentRangeError, ArgumentTypeError } from "../../errors.js";
import { checkWhole } from "../cache/checks.js";
import { checkName } from "../catalog/registration.js";
import type { Prompt } from "./types.js";

/** A prompt as the service works with it. */
export interface ResolvedPrompt {
  readonly sequenceHashes: BigUint64Array;
  readonly promptTokens: number;
}

/** Blocks of a prompt: what is hashed, looked up and booked at once stays within bounds. */
export const PROMPT_BLOCKS_MAX = 262_144;
/** Tokens of a prompt: the sums over as many bookings as there can be stay exact, so that they return to zero. */
export const PROMPT_TOKENS_MAX = 2 ** 29;
const HASH_MAX = 0xffff_ffff_ffff_ffffn;
const TOKEN_MAX = 0xffff_ffff;

/**
 * Hashes the tokens of a prompt, or takes the hashes that came in their place.
 *
 * @throws {ArgumentTypeError} `KVROUTE_ARGUMENT_TYPE` if there are neither, or a field has the wrong type
 * @throws {ArgumentRangeError} `KVROUTE_ARGUMENT_RANGE` if a field is out of range
 */
export function resolvePrompt(prompt: Prompt, blockSize: number): ResolvedPrompt {
  const { tokenIds, loraName, cacheSalt } = prompt;
  if (loraName !== undefined) checkName(loraName, "loraName");
  if (cacheSalt !== undefined) checkName(cacheSalt, "cacheSalt");
  if (tokenIds === undefined) return resolveHashes(prompt);
  const tokens = tokensOf(tokenIds);
  checkWhole(tokens.length, "the tokens of the prompt", 0, PROMPT_TOKENS_MAX);
  checkBlocks(Math.floor(tokens.length / blockSize));
  const sequenceHashes = hashSequence(tokens, { blockSize, loraName, cacheSalt });
  return { sequenceHashes, promptTokens: tokens.length };
}

function resolveHashes({ sequenceHashes, islTokens }: Prompt): ResolvedPrompt {
  if (sequenceHashes === undefined) {
    throw new ArgumentTypeError("Expected a prompt with tokenIds, or with sequenceHashes and islTokens, got neither.");
  }
  if (!(sequenceHashes instanceof BigUint64Array || Array.isArray(sequenceHashes))) {
    throw new ArgumentTypeError(
      `Expected sequenceHashes to be a list of bigints or a BigUint64Array, got ${describe(sequenceHashes)}.`,
    );
  }
  checkBlocks(sequenceHashes.length);
  checkWhole(islTokens, "islTokens", 1, PROMPT_TOKENS_MAX);
  if (sequenceHashes instanceof BigUint64Array) {
    return { sequenceHashes: sequenceHashes.slice(), promptTokens: islTokens as number };
  }
  sequenceHashes.forEach((hash: unknown, index) => {
    if (typeof hash === "bigint" && hash >= 0n && hash <= HASH_MAX) return;
    throw new ArgumentTypeError(`Expected sequenceHashes[${index}] to be a hash of 64 bits, got ${describe(hash)}.`);
  });
  return { sequenceHashes: BigUint64Array.from(sequenceHashes), promptTokens: islTokens as number };
}

function tokensOf(tokenIds: Uint32Array | readonly number[]): Uint32Array {
  if (tokenIds instanceof Uint32Array) return tokenIds;
  if (!Array.isArray(tokenIds)) {
    throw new ArgumentTypeError(
      `Expected tokenIds to be a list of numbers or a Uint32Array, got ${describe(tokenIds)}.`,
    );
  }
  const tokens = new Uint32Array(tokenIds.length);
  for (let index = 0; index < tokens.length; index++) {
    const token: unknown = tokenIds[index];
    if (!Number.isInteger(token) || (token as number) < 0 || (token as number) > TOKEN_MAX) {
      throw new ArgumentRangeError(
        `Expected tokenIds[${index}] to be a whole number from 0 to ${TOKEN_MAX}, got ${describe(token)}.`,
      );
    }
    tokens[index] = token as number;
  }
  return tokens;
}

function checkBlocks(blocks: number): void {
  if (blocks <= PROMPT_BLOCKS_MAX) return;
  throw new ArgumentRangeError(`Expected a prompt of at most ${PROMPT_BLOCKS_MAX} blocks, got one of ${blocks}.`);
}
