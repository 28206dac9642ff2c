import { describe, test } from "vitest";
import type { PoolUnderTest, Subject } from "../support/pool-under-test.js";
import { scaled } from "../support/scale.js";
import { blockPool } from "../support/subjects.js";
import { randomWalk } from "./random-walk.js";
import { colliding, extreme, growing, small } from "./spaces.js";

function walks<P extends PoolUnderTest>(subject: Subject<P>): void {
  describe(`${subject.name} beside the naive model`, () => {
    test("does the same with few hashes and few blocks", () => {
      randomWalk(subject, { space: small, runs: scaled(1_200), commandsMax: 100 });
    });
    test("does the same with hashes at the borders of their bits", () => {
      randomWalk(subject, { space: extreme, runs: scaled(500), commandsMax: 100 });
    });
    test("does the same with hashes that collide in the index", () => {
      randomWalk(subject, { space: colliding, runs: scaled(200), commandsMax: 60 });
    });
    test("does the same while it grows", () => {
      randomWalk(subject, { space: growing, runs: scaled(60), commandsMax: 40 });
    });
  });
}

walks(blockPool);
