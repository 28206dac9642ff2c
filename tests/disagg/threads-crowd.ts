import type { DisaggRouter, WorkerStats } from "kvroute/disagg";
import { expect } from "vitest";
import { until } from "../support/until.js";
import { answerTo } from "./router-model.js";
import { numbers } from "./router-schedules.js";
import { HELD } from "./threads-model.mjs";

export const ROUTERS = [0, 1] as const;
export const PREFILL = [10, 11, 12, 13] as const;
export const DECODE = [20, 21, 22, 23] as const;

/** A worker that runs elsewhere. */
export interface Remote {
  readonly rank: number;
  kill(): unknown;
  stats(): Promise<WorkerStats>;
}

interface Ended {
  readonly got: readonly bigint[];
  readonly right: readonly bigint[];
  readonly error?: { readonly code: string; readonly tokens?: number };
}

/** Asks for many answers at once, round the routers; `onToken` hears how many tokens have come altogether. */
export async function ask(
  routers: readonly DisaggRouter[],
  requests: number,
  onToken: (tokens: number) => void = () => {},
): Promise<Ended[]> {
  const random = numbers(requests);
  let arrived = 0;
  const one = async (router: DisaggRouter): Promise<Ended> => {
    const tokens = BigInt64Array.from({ length: random(40) }, () => BigInt(random(50_000)));
    const maxNewTokens = random(24);
    const right = answerTo(tokens, maxNewTokens);
    const got: bigint[] = [];
    try {
      for await (const token of router.route({ tokens, maxNewTokens })) {
        got.push(token);
        onToken(++arrived);
      }
      return { got, right };
    } catch (error) {
      return { got, right, error: error as NonNullable<Ended["error"]> };
    }
  };
  return Promise.all(Array.from({ length: requests }, (_, at) => one(routers[at % routers.length] as DisaggRouter)));
}

/** Answers that have begun, and go on only when somebody ends them. */
export interface HeldAnswers {
  /** Waits until so many of them have failed, and gives their errors. */
  failures(count: number): Promise<readonly NonNullable<Ended["error"]>[]>;
  /** Leaves those that have not. */
  leave(): Promise<unknown>;
}

/** Begins an answer of each router on each of its decode workers. */
export async function holdAnswers(routers: readonly DisaggRouter[], decodeWorkers: number): Promise<HeldAnswers> {
  const failed: NonNullable<Ended["error"]>[] = [];
  const answers = routers.flatMap((router) =>
    Array.from({ length: decodeWorkers }, () => router.route({ tokens: new BigInt64Array(HELD), maxNewTokens: 2 })),
  );
  const [first] = answerTo(new BigInt64Array(HELD), 1);
  for (const answer of answers) expect(await answer.next()).toEqual({ done: false, value: first });
  const ends = answers.map((answer) => answer.next().catch((error) => failed.push(error)));
  return {
    failures: async (count) => {
      await until(() => failed.length === count, `${count} answers have failed`);
      return failed;
    },
    leave: async () => {
      await Promise.all(answers.map((answer) => answer.return?.()));
      await Promise.all(ends);
    },
  };
}

/** Checks that every request has its whole answer. */
export function expectAllRight(ended: readonly Ended[]): void {
  expect(ended.map(({ got, error }) => error ?? got)).toEqual(ended.map(({ right }) => right));
}

/** Checks that every request has its whole answer, or an error that says how much of it had arrived. */
export function expectRightOrTold(ended: readonly Ended[]): void {
  for (const { got, right, error } of ended) {
    if (error === undefined) expect(got).toEqual(right);
    else {
      expect(error.code).toMatch(/^KVROUTE_DISAGG_/);
      expect({ got, tokens: error.tokens }).toEqual({ got: right.slice(0, got.length), tokens: got.length });
    }
  }
  expect(ended.filter(({ error }) => error === undefined).length).toBeGreaterThan(0);
}

/** Waits until nobody holds anything. */
export async function expectRest(routers: readonly DisaggRouter[], remotes: readonly Remote[]): Promise<void> {
  for (const router of routers) {
    await until(() => router.stats().notices === 0, "all notices of a router are sent");
    expect(router.stats().inFlight).toBe(0);
    expect(router.stats().workers.every(({ inFlight }) => inFlight === 0)).toBe(true);
  }
  await Promise.all(remotes.map(untilIdle));
}

async function untilIdle(remote: Remote): Promise<void> {
  const held = ({ running, waiting, pending, heldBytes }: WorkerStats) => running + waiting + pending + heldBytes;
  let left = Number.POSITIVE_INFINITY;
  const look = async () => {
    while (left > 0) left = held(await remote.stats());
  };
  void look();
  await until(() => left === 0, `rank ${remote.rank} is idle`);
}

/** Waits until every end knows all others. */
export function untilMet(ends: readonly { readonly ranks: readonly number[] }[], ranks: number): Promise<void> {
  return until(() => ends.every((end) => end.ranks.length === ranks), "all ranks have met");
}
