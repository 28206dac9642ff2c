import fc from "fast-check";
import { expect, test } from "vitest";
import { GivenUp } from "../../src/disagg/common/given-up.js";
import { Job, Jobs } from "../../src/disagg/common/jobs.js";
import { scaled } from "../support/scale.js";
import { quiet, VirtualClock } from "./router-clock.js";

const CONCURRENCY = 2;
const WAITING = 2;

type Step = readonly ["add" | "finish" | "give up", number];
const steps: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("add" as const, "finish" as const, "give up" as const),
  fc.nat(5),
);

interface Naive {
  readonly key: string;
  /** Which of the jobs that were added it is. */
  readonly number: number;
  isGivenUp: boolean;
}

test("jobs run, wait, are refused, finish and are given up as in two naive lists", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 25 }), async (plan) => {
      const clock = new VirtualClock();
      const numbers = new Map<Job, number>();
      const finish = new Map<number, () => void>();
      const begun: number[] = [];
      const left: number[] = [];
      const numberOf = (job: Job) => numbers.get(job) as number;
      const work = (job: Job) => {
        begun.push(numberOf(job));
        return new Promise<void>((resolve) => finish.set(numberOf(job), resolve));
      };
      const jobs = new Jobs<Job>(CONCURRENCY, WAITING, work, (job) => left.push(numberOf(job)));
      let running: Naive[] = [];
      let waiting: Naive[] = [];
      const expected = { begun: [] as number[], left: [] as number[] };
      const begin = () => {
        while (running.length < CONCURRENCY && waiting.length > 0) {
          const next = waiting.shift() as Naive;
          running.push(next);
          expected.begun.push(next.number);
        }
      };
      const live = () => [...running, ...waiting].filter((one) => !one.isGivenUp);
      for (const [verb, index] of plan) {
        const key = `${index}`;
        const naive = live().find((one) => one.key === key);
        const job = jobs.get(key);
        expect(job && numberOf(job)).toBe(naive?.number);
        if (verb === "add") {
          if (naive !== undefined) continue; // the caller's to avoid
          const isTaken = running.length < CONCURRENCY || waiting.length < WAITING;
          expect(jobs.hasRoom).toBe(isTaken);
          if (!isTaken) continue;
          const added = new Job(clock, key, 0, 0n, 0);
          waiting.push({ key, number: numbers.size, isGivenUp: false });
          numbers.set(added, numbers.size);
          jobs.add(added);
        } else if (verb === "finish") {
          const done = running.find((one) => one.key === key); // the one that was given up before its successor
          if (done === undefined) continue;
          finish.get(done.number)?.();
          running = running.filter((one) => one !== done);
          expected.left.push(done.number);
        } else if (naive !== undefined && job !== undefined) {
          const waits = waiting.includes(naive);
          expect(jobs.giveUp(job, new GivenUp("cancelled", "enough"))).toBe(waits);
          expect(job.signal.aborted).toBe(true);
          naive.isGivenUp = true;
          if (waits) expected.left.push(naive.number);
          waiting = waiting.filter((one) => one !== naive);
        }
        begin();
        await quiet();
        expect({ begun, left }).toEqual(expected);
        expect([jobs.running, jobs.waiting]).toEqual([running.length, waiting.length]);
        expect(jobs.all().map(numberOf).sort()).toEqual(
          live()
            .map((one) => one.number)
            .sort(),
        );
      }
    }),
    { numRuns: scaled(300) },
  );
});
