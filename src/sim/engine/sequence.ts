import type { SequenceHash } from "../../core/keys.js";
import { hashTokens, xxh3 } from "../../core/token-hash.js";

/** What an engine is asked for. */
export interface EngineRequest {
  /** The tokens of the prompt, one or more. The engine keeps a copy. */
  readonly promptTokens: Uint32Array;
  /** Tokens of the answer at most; 0 only computes the prompt, as embedding does. */
  readonly maxTokens: number;
  /** What is answered: the request stops after the last of these tokens. Default: made up until `maxTokens`. */
  readonly answer?: Uint32Array | undefined;
  readonly loraName?: string | undefined;
  readonly cacheSalt?: string | undefined;
}

/** Why a request ended. */
export type FinishReason = "stop" | "length" | "abort";

/** Room that a sequence has for its answer at first: it may ask for far more than it gets. */
const SPARE_TOKENS_MAX = 256;

/** A request on its way through the engine: its tokens, and the blocks that it holds. */
export class Sequence {
  readonly request: EngineRequest;
  readonly promptLength: number;
  readonly #blockSize: number;
  readonly #hashed: boolean;
  #tokens: Uint32Array;
  #length: number;
  #seed: bigint | undefined;
  /** The hashes of its full blocks, as far as anybody asked. */
  readonly #hashes: SequenceHash[] = [];
  /** Tokens whose KV is in its blocks. */
  computed = 0;
  /** Up to where it prefills: the tokens that it had when it was admitted. */
  prefillEnd = 0;
  /** The copies that it holds, head to tail. */
  lease: number[] = [];
  /** Leading blocks of it that are cached. */
  cachedBlocks = 0;
  /** Tokens that were cached at its first admission, -1 before. */
  cachedTokens = -1;
  preemptions = 0;
  isAborted = false;

  constructor(request: EngineRequest, blockSize: number, hashed: boolean) {
    this.request = request;
    this.#blockSize = blockSize;
    this.#hashed = hashed;
    this.#length = request.promptTokens.length;
    this.#tokens = new Uint32Array(this.#length + Math.min(request.maxTokens, SPARE_TOKENS_MAX));
    this.#tokens.set(request.promptTokens);
    this.promptLength = this.#length;
  }

  /** Counts its tokens, those of the answer included. */
  get length(): number {
    return this.#length;
  }

  get outputLength(): number {
    return this.#length - this.promptLength;
  }

  get isPrefilling(): boolean {
    return this.computed < this.prefillEnd;
  }

  /** What made-up answers depend on: all tokens of the prompt. */
  get seed(): bigint {
    this.#seed ??= xxh3(new Uint8Array(this.#tokens.buffer, 0, 4 * this.promptLength));
    return this.#seed;
  }

  /** Lists the hashes of the first blocks, all of them full; none where nothing is cached. */
  hashes(blocks: number): readonly SequenceHash[] {
    if (!this.#hashed) return [];
    const known = this.#hashes.length;
    if (blocks > known) {
      const tokens = this.#tokens.subarray(known * this.#blockSize, blocks * this.#blockSize);
      const { loraName, cacheSalt } = this.request;
      const parent = this.#hashes[known - 1];
      for (const hash of hashTokens(tokens, { blockSize: this.#blockSize, loraName, cacheSalt, parent }).sequence) {
        this.#hashes.push(hash);
      }
    }
    return this.#hashes.slice(0, blocks);
  }

  /** Copies the tokens of some blocks. */
  tokensOf(firstBlock: number, blocks: number): Uint32Array {
    return this.#tokens.slice(firstBlock * this.#blockSize, (firstBlock + blocks) * this.#blockSize);
  }

  /** Adds a token to its answer. */
  append(token: number): void {
    if (this.#length === this.#tokens.length) {
      const longer = new Uint32Array(Math.ceil(1.5 * this.#length) + 16);
      longer.set(this.#tokens);
      this.#tokens = longer;
    }
    this.#tokens[this.#length] = token;
    this.#length++;
  }
}
