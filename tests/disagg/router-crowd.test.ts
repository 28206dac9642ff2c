import fc from "fast-check";
import { expect, test } from "vitest";
import { scaled } from "../support/scale.js";
import type { VirtualClock } from "./router-clock.js";
import { answerTo } from "./router-model.js";
import { numbers, play, schedules } from "./router-schedules.js";
import { Stage } from "./router-stage.js";

/** Delays every message by up to 20 ms, and lets them overtake each other. */
const shuffled = (seed: number) => {
  const random = numbers(seed);
  return (clock: VirtualClock) => ({ reorders: true, delay: () => clock.delay(random(20)) });
};

test("1,000 requests at once from two routers over four and four workers get their own tokens, in order", async () => {
  const random = numbers(42);
  const stage = new Stage({
    routers: [0, 1],
    prefill: [10, 11, 12, 13],
    decode: [20, 21, 22, 23],
    network: shuffled(7),
    prefillWorker: { concurrency: 4 },
    decodeWorker: { concurrency: 64 },
  });
  const requests = Array.from({ length: scaled(1_000) }, (_, index) => ({
    router: stage.routers[index % 2],
    tokens: BigInt64Array.from({ length: random(40) }, () => BigInt(random(50_000))),
    maxNewTokens: random(24),
  }));
  const answers = requests.map(({ router, tokens, maxNewTokens }) => router?.collect({ tokens, maxNewTokens }));
  const got = await stage.clock.value(Promise.all(answers));
  expect(got).toEqual(requests.map(({ tokens, maxNewTokens }) => answerTo(tokens, maxNewTokens)));
  expect(stage.routers.map((router) => router.stats().complete)).toEqual([requests.length / 2, requests.length / 2]);
  await stage.clock.pass(60_000);
  stage.expectRest();
});

test("whatever dies, is lost or is cancelled, every request ends in time, and nothing is left of it", async () => {
  await fc.assert(fc.asyncProperty(schedules, play), { numRuns: scaled(300) });
});
