import fc from "fast-check";
import { expect } from "vitest";
import { DisaggError, type DisaggRouter, EOS_TOKEN, PlacementError } from "../../src/disagg/index.js";
import { answerTo, decodeStep, prefill } from "./router-model.js";
import { Stage } from "./router-stage.js";

export const ROUTERS = [0, 1] as const;
export const PREFILL = [10, 11] as const;
export const DECODE = [20, 21] as const;

const REQUEST_TIMEOUT_MS = 3_000;

export interface Planned {
  readonly router: number;
  readonly atMs: number;
  readonly tokens: readonly number[];
  readonly maxNewTokens: number;
  /** When the caller loses interest. */
  readonly abortAtMs: number | null;
}

/** Everything that happens in one run. */
export interface Schedule {
  readonly seed: number;
  readonly requests: readonly Planned[];
  readonly kills: readonly { readonly rank: number; readonly atMs: number }[];
  /** Of a thousand messages, how many are lost. */
  readonly lossPerMille: number;
}

const time = fc.integer({ min: 0, max: 150 });

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.nat(),
  requests: fc.array(
    fc.record({
      router: fc.constantFrom(...ROUTERS),
      atMs: time,
      tokens: fc.array(fc.integer({ min: 0, max: 999 }), { maxLength: 6 }),
      maxNewTokens: fc.integer({ min: 0, max: 12 }),
      abortAtMs: fc.option(time, { freq: 3 }),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  kills: fc.array(fc.record({ rank: fc.constantFrom(...ROUTERS, ...PREFILL, ...DECODE), atMs: time }), {
    maxLength: 4,
  }),
  lossPerMille: fc.constantFrom(0, 0, 30),
});

/** A generator of numbers below `below`, the same for the same seed. */
export function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Runs a schedule, and checks how each request ended and that nothing is left of any. */
export async function play(schedule: Schedule): Promise<void> {
  const random = numbers(schedule.seed);
  const stage = makeStage(schedule, random);
  const { clock } = stage;
  for (const { rank, atMs } of schedule.kills) {
    clock.setTimeout(() => stage.network.ranks.includes(rank) && stage.network.disconnect(rank), atMs);
  }
  await clock.value(Promise.all(schedule.requests.map((planned) => request(stage, planned))));
  await clock.pass(60_000);
  stage.expectRest();
}

function makeStage(schedule: Schedule, random: (below: number) => number): Stage {
  return new Stage({
    routers: ROUTERS,
    prefill: PREFILL,
    decode: DECODE,
    network: (clock) => ({
      reorders: true,
      delay: () => clock.delay(random(15)),
      loses: () => random(1_000) < schedule.lossPerMille,
    }),
    router: {
      prefillTimeoutMs: 400,
      firstTokenTimeoutMs: 400,
      tokenTimeoutMs: 200,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    },
    prefillWorker: (clock) => ({
      concurrency: 2,
      ackTimeoutMs: 300,
      prefill: async (tokens: BigInt64Array) => {
        await clock.delay(random(30));
        return prefill(tokens);
      },
    }),
    decodeWorker: (clock) => ({
      concurrency: 3,
      decodeStep: async (kv: Uint8Array, lastToken: bigint, position: number) => {
        if (random(2) === 0) await clock.delay(random(6));
        return decodeStep(kv, lastToken, position);
      },
    }),
  });
}

async function request(stage: Stage, planned: Planned): Promise<void> {
  const { clock } = stage;
  await clock.delay(planned.atMs);
  const gone = new AbortController();
  if (planned.abortAtMs !== null) clock.setTimeout(() => gone.abort(new Error("enough")), planned.abortAtMs);
  const tokens = BigInt64Array.from(planned.tokens, BigInt);
  const router = stage.routers[planned.router] as DisaggRouter;
  const answer = router.route({ tokens, maxNewTokens: planned.maxNewTokens, signal: gone.signal });
  const startMs = clock.now();
  const got: bigint[] = [];
  const right = answerTo(tokens, planned.maxNewTokens);
  try {
    for await (const token of answer) got.push(token);
    expect(got).toEqual(right);
  } catch (error) {
    checkFailure(error, got, gone.signal);
    expect(got).toEqual(right.slice(0, got.length));
  }
  expect(got).not.toContain(EOS_TOKEN);
  expect(clock.now() - startMs).toBeLessThanOrEqual(REQUEST_TIMEOUT_MS);
}

function checkFailure(error: unknown, got: readonly bigint[], signal: AbortSignal): void {
  if (signal.aborted && error === signal.reason) return;
  if (error instanceof PlacementError) {
    expect({ code: error.code, got }).toEqual({ code: "KVROUTE_NO_WORKERS", got: [] });
    return;
  }
  if (!(error instanceof DisaggError)) throw error;
  expect(error.tokens).toBe(got.length);
  expect(error.message).toContain(`after ${got.length} token`);
}
