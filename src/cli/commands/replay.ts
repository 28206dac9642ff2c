import { Argument, type Command, Option } from "commander";
import { gunzip } from "../../node/bytes.js";
import { MATCH_THRESHOLD_DEFAULT } from "../../selection/policies/cache-aware.js";
import { PREFIX_BLOCKS_DEFAULT, PREFIX_BLOCKS_MAX } from "../../selection/policies/prefix-hash.js";
import { createPolicy, POLICY_NAMES, type PolicyName } from "../../selection/policy.js";
import { BLOCKS_MAX, replay, WORKERS_MAX } from "../../sim/replay.js";
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
  readonly skipBad?: boolean | undefined;
  readonly json?: boolean | undefined;
}

export const REPLAY_DEFAULTS: ReplaySettings = {
  workers: 8,
  blocks: 4_000,
  policy: POLICY_NAMES,
  prefixBlocks: PREFIX_BLOCKS_DEFAULT,
  matchThreshold: MATCH_THRESHOLD_DEFAULT,
  seed: 0,
};

const HELP = `
The trace is JSON Lines, plain or gzipped, one request a row, in one of two forms:
  {"timestamp": 0, "input_length": 1300, "output_length": 90, "hash_ids": [0, 1, 2]}
  {"timestamp": 0, "session_id": "a", "input_chars": 600, "output_chars": 90, "hash_ids": [0, 1]}
Timestamps are milliseconds. hash_ids holds one number for each block of the prompt (512 tokens, or
256 characters); the same number stands for the same block with the same text before it.

Policies:
  round-robin   in turn
  random        any worker
  least-loaded  the worker that has had the fewest blocks to compute
  prefix-hash   by a hash of the first blocks of the prompt (--prefix-blocks), without any state
  cache-aware   the worker that holds most of the prompt, if that is more than --match-threshold,
                else the least loaded

Exit code: 0 when all went well, 1 when the trace cannot be read, 2 when the command is wrong.`;

/** Adds `kvroute replay` to the program. */
export function addReplay(program: Command, io: CliIo): void {
  const { workers, blocks, policy, prefixBlocks, matchThreshold, seed } = REPLAY_DEFAULTS;
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
      now: () => io.now(),
    });
    const context = { trace, traceName: input.name, workers, blocksPerWorker, seed, skipped, firstSkipped };
    return settings.json ? formatJson(report, context) : formatText(report, context);
  } finally {
    progress.stop();
  }
}
