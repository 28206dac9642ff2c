import { Argument, type Command, Option } from "commander";
import { OptionError } from "../../errors.js";
import { gunzip } from "../../node/bytes.js";
import { MATCH_THRESHOLD_DEFAULT } from "../../selection/policies/cache-aware.js";
import { PREFIX_BLOCKS_DEFAULT, PREFIX_BLOCKS_MAX } from "../../selection/policies/prefix-hash.js";
import { createPolicy, type PolicyName } from "../../selection/policy.js";
import { BLOCKS_MAX, type ReplayTiming, replay, WORKERS_MAX } from "../../sim/replay.js";
import {
  DECODE_MS_PER_TOKEN_DEFAULT,
  DECODE_MS_PER_TOKEN_MAX,
  PREFILL_RATE_MAX,
  UTILISATION_MAX,
} from "../../sim/timing.js";
import { readTrace } from "../../sim/trace.js";
import { findTrace, type TraceInput } from "../input.js";
import { type CliIo, write } from "../io.js";
import { startProgress } from "../progress.js";
import { formatJson, formatText } from "../report.js";
import { count, countOrInfinite, decimal, policies } from "../values.js";

export interface ReplaySettings {
  readonly workers: number;
  readonly blocks: number | "infinite";
  readonly policy: readonly PolicyName[];
  readonly prefixBlocks: number;
  readonly matchThreshold: number;
  readonly seed: number;
  readonly utilisation?: number | undefined;
  readonly prefillRate?: number | undefined;
  readonly decodeMsPerToken: number;
  readonly closedLoop?: boolean | undefined;
  readonly hold?: boolean | undefined;
  readonly skipBad?: boolean | undefined;
  readonly json?: boolean | undefined;
}

export const REPLAY_DEFAULTS: ReplaySettings = {
  workers: 8,
  blocks: 4_000,
  policy: [
    "kv",
    "latency-first",
    "cache-first",
    "dynamo",
    "cache-aware",
    "prefix-hash",
    "least-loaded",
    "round-robin",
    "longest-prefix",
  ],
  prefixBlocks: PREFIX_BLOCKS_DEFAULT,
  matchThreshold: MATCH_THRESHOLD_DEFAULT,
  seed: 0,
  decodeMsPerToken: DECODE_MS_PER_TOKEN_DEFAULT,
};

const HELP = `
The trace is JSON Lines, plain or gzipped, one request a row, in one of two forms:
  {"timestamp": 0, "input_length": 1300, "output_length": 90, "hash_ids": [0, 1, 2]}
  {"timestamp": 0, "session_id": "a", "input_chars": 600, "output_chars": 90, "hash_ids": [0, 1]}
Timestamps are milliseconds. hash_ids holds one number for each block of the prompt (512 tokens, or
256 characters); the same number stands for the same block with the same text before it.

With --utilisation or --prefill-rate each worker computes prompts one after the other at a fixed rate, and the
table shows delays: from the arrival of a request to the end of its prefill. --utilisation takes the rate at
which workers would be that busy if each took its turn; it holds the trace in memory. In a trace of
characters the rate is in characters, and four of them count as a token of the answer.

Policies:
  kv              where the first token comes soonest, with a tax on prefill that another worker would have spared
  latency-first   the same with the least tax
  cache-first     the same with a high tax
  dynamo          by the cost function of NVIDIA Dynamo's router
  cache-aware     the worker that holds most of the prompt, if that is more than --match-threshold,
                  else the one that has had the fewest blocks to compute
  prefix-hash     by a hash of the first blocks of the prompt (--prefix-blocks), without any state
  session-pin     where the session's last request was sent
  least-loaded    the worker with the least prefill to do
  power-of-two    of two workers drawn at random the one with fewer requests
  round-robin     in turn
  random          any worker
  longest-prefix  the worker that holds most of the prompt, whatever its load: a trap, shown as such

Exit code: 0 when all went well, 1 when the trace cannot be read, 2 when the command is wrong.`;

/** Adds `kvroute replay` to the program. */
export function addReplay(program: Command, io: CliIo): void {
  const { workers, blocks, policy, prefixBlocks, matchThreshold, seed, decodeMsPerToken } = REPLAY_DEFAULTS;
  program
    .command("replay")
    .summary("show what each routing policy would have done for a trace")
    .description("Sends every request of a trace through each routing policy to workers with real KV caches.")
    .addArgument(new Argument("<trace>", 'a file, or "-" for standard input'))
    .option("--workers <count>", "workers that share the traffic", count(1, WORKERS_MAX), workers)
    .option("--blocks <count>", 'KV cache of a worker in blocks, or "infinite"', countOrInfinite(1, BLOCKS_MAX), blocks)
    .addOption(
      new Option("--policy <names>", "policies to compare, between commas")
        .argParser(policies)
        .default(policy, policy.join(",")),
    )
    .option("--prefix-blocks <count>", "blocks that prefix-hash hashes", count(1, PREFIX_BLOCKS_MAX), prefixBlocks)
    .option("--match-threshold <part>", "match that cache-aware asks for", decimal(0, 1), matchThreshold)
    .option("--seed <number>", "seeds whatever is random", count(0, Number.MAX_SAFE_INTEGER), seed)
    .addOption(
      new Option("--utilisation <part>", "let prefill take time: how busy taking turns would keep the workers")
        .argParser(decimal(0, UTILISATION_MAX, true))
        .conflicts("prefillRate"),
    )
    .option("--prefill-rate <tokens>", "the same: tokens a second and worker", decimal(0, PREFILL_RATE_MAX, true))
    .option(
      "--decode-ms-per-token <ms>",
      "how long answers take",
      decimal(0, DECODE_MS_PER_TOKEN_MAX),
      decodeMsPerToken,
    )
    .option("--closed-loop", "let a request wait for the answer to the one before it in its session")
    .option("--hold", "hold requests until a worker is free, least to compute first; for policies with a cost")
    .option("--skip-bad", "leave bad rows out, and count them, instead of stopping")
    .option("--json", "print one JSON object instead of the table")
    .addHelpText("after", HELP)
    .action(async (path: string, settings: ReplaySettings) => {
      const input = await findTrace(path, io);
      await write(io.stdout, await replayInput(input, path, settings, io));
    });
}

/** Replays a trace and gives back the report, as text or as JSON. */
export async function replayInput(
  input: TraceInput,
  trace: string,
  settings: ReplaySettings,
  io: CliIo,
): Promise<string> {
  let skipped = 0;
  let firstSkipped: string | undefined;
  const countBadRow = (error: Error): void => {
    skipped++;
    firstSkipped ??= error.message;
  };
  const { workers, blocks: blocksPerWorker, seed } = settings;
  const progress = startProgress(io.stderr, input.totalBytes);
  try {
    const stream = input.open((bytes) => progress.advance(bytes));
    const onBadRow = settings.skipBad ? countBadRow : undefined;
    const report = await replay(readTrace(stream, { name: input.name, onBadRow, gunzip }), {
      policies: settings.policy.map((name) => createPolicy(name, settings)),
      workers,
      blocksPerWorker,
      seed,
      timing: timingOf(settings),
      now: () => io.now(),
    });
    const context = { trace, traceName: input.name, workers, blocksPerWorker, seed, skipped, firstSkipped };
    return settings.json ? formatJson(report, context) : formatText(report, context);
  } finally {
    progress.stop();
  }
}

/** @throws {OptionError} `KVROUTE_OPTION` if a closed loop or holding is asked for without a rate */
function timingOf(settings: ReplaySettings): ReplayTiming | undefined {
  const { utilisation, prefillRate, decodeMsPerToken, closedLoop, hold } = settings;
  if (utilisation !== undefined || prefillRate !== undefined) {
    return { utilisation, prefillRate, decodeMsPerToken, closedLoop, hold };
  }
  if (closedLoop === true) {
    throw new OptionError("--closed-loop needs --utilisation or --prefill-rate: without them answers take no time.");
  }
  if (hold !== true) return undefined;
  throw new OptionError("--hold needs --utilisation or --prefill-rate: without them workers are always free.");
}
