import { OptionError } from "../errors.js";
import type { MooncakeRow } from "./generate.js";
import { Prng } from "./prng.js";

/** Loads that single out one way in which a policy can fail. */
export const STRESS_NAMES = ["hot", "burst", "document", "one-at-a-time"] as const;

export type StressName = (typeof STRESS_NAMES)[number];

export interface StressOptions {
  /** Same seed, same trace, on every runtime: 0 to 2^53 - 1. Default 0. */
  readonly seed?: number | undefined;
}

/**
 * The prefill rate of a worker, in tokens a second, at which stress traces are what their names say: it is that of eight
 * workers which serve Mooncake's conversation trace in turns and are busy nine tenths of the time.
 */
export const STRESS_PREFILL_RATE = 4_895;

const BLOCK_TOKENS = 512;
const ANSWER_TOKENS = 100;

/** Tells whether a stress trace goes by this name. */
export function isStressName(name: string): name is StressName {
  return (STRESS_NAMES as readonly string[]).includes(name);
}

const generators: Readonly<Record<StressName, (writer: Writer) => Generator<MooncakeRow, void, undefined>>> = {
  hot,
  burst,
  document,
  "one-at-a-time": oneAtATime,
};

/**
 * Makes up a stress trace, request by request, in order of arrival. Replay it at `STRESS_PREFILL_RATE`.
 *
 * `hot`: for four minutes three workers' worth of short questions to one prefix of 16 blocks, over a little of everything
 * else. `burst`: 400 questions to a prefix of 32 blocks that nobody has seen, within two seconds. `document`: for five
 * minutes one question a second to a document of 64 blocks, within what one worker can do. `one-at-a-time`: 1,000 different
 * prompts, each sent when the one before it has ended.
 *
 * @throws {OptionError} `KVROUTE_OPTION` if there is no such trace, or the seed is out of range
 */
export function generateStress(
  name: StressName,
  { seed = 0 }: StressOptions = {},
): Generator<MooncakeRow, void, undefined> {
  if (!isStressName(name))
    throw new OptionError(`Expected a stress trace among ${STRESS_NAMES.join(", ")}, got ${name}.`);
  return generators[name](new Writer(new Prng(seed)));
}

const HOT_MS = 240_000;
const HOT_PREFIX_BLOCKS = 16;
const HOT_TAIL_TOKENS = 256;
/** As many as three workers can compute the tails of. */
const HOT_PER_SECOND = (3 * STRESS_PREFILL_RATE) / HOT_TAIL_TOKENS;
const COLD_BLOCKS = 4;
const COLD_PER_SECOND = 2;

/** Questions to one prefix, and prompts with nothing in common with anything, both at random times (Poisson). */
function* hot(writer: Writer): Generator<MooncakeRow, void, undefined> {
  const prefix = writer.blocks(HOT_PREFIX_BLOCKS);
  const share = HOT_PER_SECOND / (HOT_PER_SECOND + COLD_PER_SECOND);
  const gapMs = 1000 / (HOT_PER_SECOND + COLD_PER_SECOND);
  for (let atMs = 0; atMs < HOT_MS; atMs += writer.chance.exponential() * gapMs) {
    const isHot = writer.chance.random() < share;
    yield isHot ? writer.ask(atMs, prefix, HOT_TAIL_TOKENS) : writer.ask(atMs, [], COLD_BLOCKS * BLOCK_TOKENS);
  }
}

const BURST_REQUESTS = 400;
const BURST_MS = 2_000;
const BURST_PREFIX_BLOCKS = 32;
const BURST_TAIL_TOKENS = 300;

function* burst(writer: Writer): Generator<MooncakeRow, void, undefined> {
  const prefix = writer.blocks(BURST_PREFIX_BLOCKS);
  for (let at = 0; at < BURST_REQUESTS; at++) {
    yield writer.ask((at * BURST_MS) / BURST_REQUESTS, prefix, BURST_TAIL_TOKENS);
  }
}

const DOCUMENT_REQUESTS = 300;
const DOCUMENT_BLOCKS = 64;
const QUESTION_BLOCKS = 4;

function* document(writer: Writer): Generator<MooncakeRow, void, undefined> {
  const prefix = writer.blocks(DOCUMENT_BLOCKS);
  for (let at = 0; at < DOCUMENT_REQUESTS; at++) yield writer.ask(at * 1000, prefix, QUESTION_BLOCKS * BLOCK_TOKENS);
}

const SINGLE_REQUESTS = 1_000;
const SINGLE_BLOCKS = 4;
const SINGLE_GAP_MS = 10_000; // more than a prompt and its answer take

function* oneAtATime(writer: Writer): Generator<MooncakeRow, void, undefined> {
  for (let at = 0; at < SINGLE_REQUESTS; at++) yield writer.ask(at * SINGLE_GAP_MS, [], SINGLE_BLOCKS * BLOCK_TOKENS);
}

/** Writes prompts, which here are lengths and ids. */
class Writer {
  readonly chance: Prng;
  #ids = 0;

  constructor(chance: Prng) {
    this.chance = chance;
  }

  /** Names blocks that nobody has seen. */
  blocks(count: number): number[] {
    return Array.from({ length: count }, () => this.#ids++);
  }

  /** Asks a question behind a prefix. */
  ask(atMs: number, prefix: readonly number[], tokens: number): MooncakeRow {
    const tail = this.blocks(Math.ceil(tokens / BLOCK_TOKENS));
    return {
      timestamp: Math.floor(atMs * 1000) / 1000,
      input_length: prefix.length * BLOCK_TOKENS + tokens,
      output_length: ANSWER_TOKENS,
      hash_ids: [...prefix, ...tail],
    };
  }
}
