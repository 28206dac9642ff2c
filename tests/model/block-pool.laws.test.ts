import { describe, test } from "vitest";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { blockPool, naive } from "../support/subjects.js";
import { laws } from "./laws/all.js";

function obeys<P extends PoolUnderTest>(subject: Subject<P>): void {
  for (const [about, group] of Object.entries(laws)) {
    describe(`${subject.name}, ${about}`, () => {
      for (const { title, holds } of group) {
        test(title, () => {
          const pools: P[] = [];
          holds((options) => {
            const pool = subject.create(options);
            pools.push(pool);
            return pool;
          });
          for (const pool of pools) subject.verify(pool);
        });
      }
    });
  }
}

obeys(naive);
obeys(blockPool);
