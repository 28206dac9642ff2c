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

test("jobs run, wait, are refused, finish and are given up as in two naive lists", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 25 }), async (plan) => {
      const clock = new VirtualClock();
      const finish = new Map<string, () => void>();
      const begun: string[] = [];
      const left: string[] = [];
      const work = (job: Job) => {
        begun.push(job.key);
        return new Promise<void>((resolve) => finish.set(job.key, resolve));
      };
      const jobs = new Jobs<Job>(CONCURRENCY, WAITING, work, (job) => left.push(job.key));
      let running: string[] = [];
      let waiting: string[] = [];
      const expected = { begun: [] as string[], left: [] as string[] };
      const begin = () => {
        while (running.length < CONCURRENCY && waiting.length > 0) {
          const next = waiting.shift() as string;
          running.push(next);
          expected.begun.push(next);
        }
      };
      for (const [verb, index] of plan) {
        const key = `${index}`;
        const isLive = running.includes(key) || waiting.includes(key);
        expect(jobs.get(key) !== undefined).toBe(isLive);
        if (verb === "add") {
          if (isLive) continue; // the caller's to avoid
          const isTaken = running.length < CONCURRENCY || waiting.length < WAITING;
          expect(jobs.add(new Job(clock, key, 0, 0n, 0))).toBe(isTaken);
          if (isTaken) waiting.push(key);
        } else if (verb === "finish" && running.includes(key)) {
          finish.get(key)?.();
          running = running.filter((other) => other !== key);
          expected.left.push(key);
        } else if (verb === "give up" && isLive) {
          const job = jobs.get(key) as Job;
          expect(jobs.giveUp(job, new GivenUp("cancelled", "enough"))).toBe(waiting.includes(key));
          expect(job.signal.aborted).toBe(true);
          if (waiting.includes(key)) expected.left.push(key);
          waiting = waiting.filter((other) => other !== key);
        }
        begin();
        await quiet();
        expect({ begun, left }).toEqual(expected);
        expect([jobs.running, jobs.waiting]).toEqual([running.length, waiting.length]);
        expect(
          jobs
            .all()
            .map((job) => job.key)
            .sort(),
        ).toEqual([...running, ...waiting].sort());
      }
    }),
    { numRuns: scaled(300) },
  );
});
