import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PAGE_BYTES } from "../../src/abi.js";
import { BlockPool } from "../../src/core/block-pool.js";
import { scale, scaled } from "../support/scale.js";
import { blockPool } from "../support/subjects.js";
import { failGrowth, isCheckedPool } from "../support/verify.js";
import { command } from "./commands.js";
import { GROWING_CAPACITY, growingVerbs, prepare, settledVerbs } from "./growing-verbs.js";
import { randomWalk } from "./random-walk.js";
import { play, SCENARIO_CAPACITY } from "./scenario.js";
import { growing } from "./spaces.js";
import { type Call, World } from "./world.js";

const GROWTHS_MIN = 4; // fewer would mean that the scenario has lost its point

describe("a limit of memory refuses single calls, changes nothing and leaves the pool usable", () => {
  const enough = playWithin(undefined).pages;

  for (let pages = 1; pages < enough; pages++) {
    test(`of ${pages} pages, where ${enough} would do`, () => {
      const { limited, pages: used } = playWithin(pages * PAGE_BYTES);
      expect(limited).not.toEqual([]);
      expect(used).toBeLessThanOrEqual(pages);
    });
  }

  test(`of ${enough} pages refuses nothing, and of one byte less does`, () => {
    expect(playWithin(enough * PAGE_BYTES).limited).toEqual([]);
    expect(playWithin(enough * PAGE_BYTES - 1)).toEqual(playWithin((enough - 1) * PAGE_BYTES));
  });

  test("in random walks", () => {
    const memory = fc.integer({ min: 1, max: 12 }).map((pages) => pages * PAGE_BYTES);
    const limited = randomWalk(blockPool, { space: growing, memory, runs: scaled(60), commandsMax: 60 });
    if (scale >= 1) expect(limited).toBeGreaterThan(0);
  });
});

describe("a growth that the runtime refuses changes nothing, and the next one is granted", () => {
  test("the first, the second, and so on until the scenario meets none", () => {
    let k = 1;
    while (playWithFault(k)) k++;
    const growths = k - 1;
    if (isCheckedPool(blockPool.create({ capacity: 1 }))) expect(growths).toBeGreaterThanOrEqual(GROWTHS_MIN);
    else expect(growths).toBe(0); // the shipped core has no way to let memory fail
  });

  test("in random walks", () => {
    const k = fc.integer({ min: 1, max: 3 }).map((growths) => () => growths);
    const fault = command("failGrowth", fc.tuple(k), (side, growths) => refuseGrowth(side.pool, growths));
    const memory = fc.constant(2 ** 32);
    const walk = { space: growing, memory, extra: [fault], runs: scaled(120), commandsMax: 60 };
    const limited = randomWalk(blockPool, walk);
    if (scale >= 1 && isCheckedPool(blockPool.create({ capacity: 1 }))) expect(limited).toBeGreaterThan(0);
  });
});

describe("a verb that meets a limit can do its work once there is room", () => {
  const full = preparedWorld().real.pool.memoryBytes;

  for (const verb of growingVerbs) {
    test(`${verb.text}, at the limit of memory`, () => {
      const world = preparedWorld(full);
      expect(meetsLimit(world, verb)).toBe(true);
      for (const settled of settledVerbs) expect(meetsLimit(world, settled)).toBe(false);
    });

    test(`${verb.text}, when growth is refused once`, () => {
      const world = preparedWorld();
      failGrowth(world.real.pool, 1);
      expect(meetsLimit(world, verb)).toBe(isCheckedPool(world.real.pool));
      if (isCheckedPool(world.real.pool)) expect(meetsLimit(world, verb)).toBe(false);
      expect(world.real.pool.memoryBytes).toBeGreaterThan(full);
    });
  }
});

function preparedWorld(maxMemoryBytes = 2 ** 32): World<BlockPool> {
  const world = new World(blockPool, { capacity: GROWING_CAPACITY, limitsAllowed: true, maxMemoryBytes });
  prepare(world);
  return world;
}

/** Plays the scenario in so many bytes. A call that meets the limit must meet it again. */
function playWithin(maxMemoryBytes: number | undefined): { limited: readonly string[]; pages: number } {
  const options = maxMemoryBytes === undefined ? {} : { maxMemoryBytes };
  const world = new World(blockPool, { capacity: SCENARIO_CAPACITY, limitsAllowed: true, ...options });
  play(world, (call) => {
    expect(meetsLimit(world, call)).toBe(true);
    return false;
  });
  return { limited: world.limited, pages: world.real.pool.memoryBytes / PAGE_BYTES };
}

/** Plays the scenario while the k-th growth is refused. Returns whether there was a k-th growth. */
function playWithFault(k: number): boolean {
  const world = new World(blockPool, { capacity: SCENARIO_CAPACITY, limitsAllowed: true });
  failGrowth(world.real.pool, k);
  play(world, (call) => {
    expect(world.limited).toHaveLength(1);
    expect(meetsLimit(world, call)).toBe(false);
    return true;
  });
  return world.limited.length > 0;
}

/** Makes a call again. Returns whether it met a limit. */
function meetsLimit(world: World<BlockPool>, call: Call): boolean {
  const before = world.limited.length;
  world.step(call);
  return world.limited.length > before;
}

function refuseGrowth(pool: unknown, k: number): void {
  if (pool instanceof BlockPool) failGrowth(pool, k);
}
