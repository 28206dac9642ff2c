import { OptionError } from "../errors.js";
import { countOption } from "../selection/policies/numbers.js";
import { Heap } from "./heap.js";
import { Prng, zipf } from "./prng.js";

/** One request in the form of the Mooncake traces. Lengths are in tokens, the timestamp in milliseconds. */
export interface MooncakeRow {
  readonly timestamp: number;
  readonly input_length: number;
  readonly output_length: number;
  /** One id for every block of 512 tokens, the last and partial one included. */
  readonly hash_ids: readonly number[];
}

export interface GenerateOptions {
  /** Requests in the trace, 1 to `REQUESTS_MAX`. */
  readonly requests: number;
  /** Same seed, same trace, on every runtime: 0 to 2^53 - 1. Default 0. */
  readonly seed?: number | undefined;
  /** Different system prompts, 1 to `SYSTEM_PROMPTS_MAX`. Default 32. */
  readonly systemPrompts?: number | undefined;
  /** Mean rate at which requests arrive, above 0 and at most `REQUESTS_PER_SECOND_MAX`. Default 4. */
  readonly requestsPerSecond?: number | undefined;
}

export const REQUESTS_MAX = 100_000_000;
export const SYSTEM_PROMPTS_MAX = 100_000;
export const SYSTEM_PROMPTS_DEFAULT = 32;
export const REQUESTS_PER_SECOND_MAX = 1_000_000;
export const REQUESTS_PER_SECOND_DEFAULT = 4;

const BLOCK_TOKENS = 512;
const PREAMBLE_BLOCKS = 1; // all system prompts start alike, as in the real trace of Mooncake
const SYSTEM_PROMPT_TOKENS_MAX = 4_096;
const PROMPT_TOKENS_MAX = 131_072; // a conversation ends before it outgrows the context of the model
const TURNS_MEAN = 4;
const MESSAGE_TOKENS_MEAN = 150;
const DOCUMENT_TOKENS_MEAN = 6_000;
const DOCUMENT_CHANCE = 0.2; // that a conversation starts with one
const ANSWER_TOKENS_MEAN = 300;
const MS_PER_ANSWER_TOKEN = 25;
const PAUSE_MS_MIN = 2_000; // to read the answer and write the next message
const PAUSE_MS_MEAN = 30_000;

/**
 * Makes up a trace of conversations, request by request, in order of arrival.
 *
 * Each conversation starts with one of the system prompts, whose popularity follows Zipf's law, and every turn sends
 * the whole history and a new message. Conversations start at random (Poisson), and so do pauses, lengths and ends.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if an option is out of its range
 */
export function* generateTrace(options: GenerateOptions): Generator<MooncakeRow, void, undefined> {
  const { systemPrompts = SYSTEM_PROMPTS_DEFAULT, requestsPerSecond = REQUESTS_PER_SECOND_DEFAULT } = options;
  countOption("requests", options.requests, 1, REQUESTS_MAX);
  countOption("systemPrompts", systemPrompts, 1, SYSTEM_PROMPTS_MAX);
  if (!(requestsPerSecond > 0 && requestsPerSecond <= REQUESTS_PER_SECOND_MAX)) {
    const range = `above 0 and at most ${REQUESTS_PER_SECOND_MAX}`;
    throw new OptionError(`Expected requestsPerSecond to be ${range}, got ${requestsPerSecond}.`);
  }
  const chance = new Prng(options.seed ?? 0);
  const writer = new Writer(chance, systemPrompts);
  const startGapMs = (TURNS_MEAN * 1000) / requestsPerSecond;
  const waiting = new Heap<Conversation>(isEarlier);
  let startMs = 0;
  for (let request = 0; request < options.requests; request++) {
    const first = waiting.first;
    const isNew = first === undefined || startMs <= first.nextMs;
    const conversation = isNew ? writer.start(startMs) : first;
    if (isNew) startMs += chance.exponential() * startGapMs;
    else waiting.pop();
    yield writer.takeTurn(conversation);
    if (chance.random() * TURNS_MEAN >= 1 && conversation.tokens < PROMPT_TOKENS_MAX) waiting.push(conversation);
  }
}

/** Writes a row as one line of a trace, its newline included. */
export function formatRow(row: MooncakeRow): string {
  return `${JSON.stringify(row)}\n`;
}

interface Conversation {
  readonly serial: number;
  /** When the next message is sent, in milliseconds. */
  nextMs: number;
  /** Length of the history, the last answer included. */
  tokens: number;
  /** The full blocks of the last prompt, root first. */
  readonly blockIds: number[];
}

interface SystemPrompt {
  readonly tokens: number;
  readonly blockIds: readonly number[];
}

function isEarlier(left: Conversation, right: Conversation): boolean {
  return left.nextMs === right.nextMs ? left.serial < right.serial : left.nextMs < right.nextMs;
}

/** Writes system prompts, messages and answers, which here are lengths and ids. */
class Writer {
  readonly #chance: Prng;
  readonly #pickSystemPrompt: (chance: Prng) => number;
  readonly #systemPrompts: SystemPrompt[] = []; // filled in as they are first picked, with holes
  #conversations = 0;
  #blockIds = 0;
  readonly #preambleIds: readonly number[];

  constructor(chance: Prng, systemPrompts: number) {
    this.#chance = chance;
    this.#pickSystemPrompt = zipf(systemPrompts);
    this.#preambleIds = Array.from({ length: PREAMBLE_BLOCKS }, () => this.#blockIds++);
  }

  /** Opens a conversation with a system prompt and, now and then, with a document. */
  start(nextMs: number): Conversation {
    const rank = this.#pickSystemPrompt(this.#chance);
    this.#systemPrompts[rank] ??= this.#writeSystemPrompt();
    const { tokens, blockIds } = this.#systemPrompts[rank];
    const documentTokens = this.#chance.random() < DOCUMENT_CHANCE ? this.#length(DOCUMENT_TOKENS_MEAN) : 0;
    return { serial: this.#conversations++, nextMs, tokens: tokens + documentTokens, blockIds: [...blockIds] };
  }

  /** Sends a message and hears the answer; the conversation then waits for its next turn. */
  takeTurn(conversation: Conversation): MooncakeRow {
    const inputTokens = Math.min(conversation.tokens + this.#length(MESSAGE_TOKENS_MEAN), PROMPT_TOKENS_MAX);
    const outputTokens = this.#length(ANSWER_TOKENS_MEAN);
    const { blockIds } = conversation;
    while ((blockIds.length + 1) * BLOCK_TOKENS <= inputTokens) blockIds.push(this.#blockIds++);
    const isPartial = blockIds.length * BLOCK_TOKENS < inputTokens;
    const row = {
      timestamp: Math.floor(conversation.nextMs),
      input_length: inputTokens,
      output_length: outputTokens,
      hash_ids: isPartial ? [...blockIds, this.#blockIds++] : [...blockIds], // what is partial now has grown next time
    };
    conversation.tokens = inputTokens + outputTokens;
    conversation.nextMs += outputTokens * MS_PER_ANSWER_TOKEN + PAUSE_MS_MIN;
    conversation.nextMs += this.#chance.exponential() * (PAUSE_MS_MEAN - PAUSE_MS_MIN);
    return row;
  }

  #writeSystemPrompt(): SystemPrompt {
    const preambleTokens = PREAMBLE_BLOCKS * BLOCK_TOKENS;
    const tokens = preambleTokens + this.#chance.below(SYSTEM_PROMPT_TOKENS_MAX - preambleTokens + 1);
    const blockIds = [...this.#preambleIds];
    while ((blockIds.length + 1) * BLOCK_TOKENS <= tokens) blockIds.push(this.#blockIds++);
    return { tokens, blockIds };
  }

  /** Draws a length of at least one token. */
  #length(meanTokens: number): number {
    return 1 + Math.floor(this.#chance.exponential() * meanTokens);
  }
}
