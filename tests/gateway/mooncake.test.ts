import { describe, expect, test } from "vitest";
import { createPolicy, type PolicyName } from "../../src/selection/policy.js";
import { replay } from "../../src/sim/replay.js";
import type { TraceRequest } from "../../src/sim/trace.js";
import { scaled } from "../support/scale.js";
import { areThere, CONVERSATION, requests } from "../unit/replay-shared-traces.js";
import { play } from "./mooncake-play.js";

// Does the replay tell the truth about the router? The beginning of Mooncake's conversation trace is played twice for each
// policy: by `kvroute replay`, and through `router.fetch` at four engines in processes of their own, over HTTP.
//
// The same: the rows and when they arrive; four workers whose caches hold 4,000 blocks of 512 tokens, which is far less than
// all of it, so that both evict; the speed of prefill, at which workers that take turns are busy 70 % of the time. Each hash
// of the trace is 2,048 bytes of text, which are 512 tokens of the engine. What is compared is the part of all full blocks
// that was cached, as the engines' usage tells the clients.
//
// Not the same, and this is what the three points are for: the replay looks into the caches, and the router believes what it
// has sent where, in blocks of 256 bytes, without knowing how large the caches are; an engine batches requests, and looks
// into its cache when a request has its turn; its answers have two tokens, while those of the replay take their time.
//
// Engines and router have virtual clocks that go on when everybody has done and read what was due: the machine's speed plays
// no part.

const ROWS = scaled(2_000);
const WORKERS = 4;
const BLOCKS_PER_WORKER = 4_000;
const UTILISATION = 0.7;
const THREE_POINTS = 0.03;
const POLICIES: readonly PolicyName[] = ["kv", "round-robin"];

async function firstRows(): Promise<TraceRequest[]> {
  const rows: TraceRequest[] = [];
  for await (const row of requests(CONVERSATION)) if (rows.push(row) === ROWS) break;
  return rows;
}

async function* again(rows: readonly TraceRequest[]): AsyncGenerator<TraceRequest, void, undefined> {
  yield* rows;
}

const percent = (part: number) => `${(100 * part).toFixed(2)} %`;

describe.skipIf(!areThere)(`the first ${ROWS} requests of Mooncake's conversation trace, over HTTP`, () => {
  test("have the hit rates that the replay says, and kv more than round-robin", { timeout: 600_000 }, async () => {
    const rows = await firstRows();
    const replayed = await replay(again(rows), {
      policies: POLICIES.map((name) => createPolicy(name)),
      workers: WORKERS,
      blocksPerWorker: BLOCKS_PER_WORKER,
      timing: { utilisation: UTILISATION },
      now: () => 0,
    });
    const prefillMsPerToken = 1_000 / (replayed.timing?.prefillRate as number);
    const engine = {
      numGpuBlocks: BLOCKS_PER_WORKER,
      maxNumBatchedTokens: 8_192,
      prefillMsPerToken,
      decodeMs: 25,
    };
    const hitRates: number[] = [];
    for (const [index, policy] of POLICIES.entries()) {
      const { requests, blocks, hitBlocks } = await play(rows, { policy, engines: WORKERS, engine });
      expect({ requests, blocks }).toEqual({ requests: ROWS, blocks: replayed.blocks });
      const said = replayed.policies[index]?.hitRate as number;
      hitRates.push(hitBlocks / blocks);
      console.log(
        `${policy}: ${percent(hitBlocks / blocks)} of blocks hit over HTTP, the replay says ${percent(said)}`,
      );
      expect(Math.abs(hitBlocks / blocks - said)).toBeLessThan(THREE_POINTS);
    }
    const [kv, roundRobin] = hitRates as [number, number];
    expect(kv).toBeGreaterThan(roundRobin);
  });
});
