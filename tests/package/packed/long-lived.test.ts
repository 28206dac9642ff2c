import { describe, expect, inject, test } from "vitest";
import { run } from "../../runtimes/process.js";

const project = inject("project");

interface Collected {
  readonly pools: number;
  readonly before: { readonly rss: number; readonly heapUsed: number };
  readonly after: { readonly rss: number; readonly heapUsed: number };
}

async function collect(...flags: string[]): Promise<Collected> {
  const collected = JSON.parse(await run(process.execPath, ["--expose-gc", ...flags, "collect.js"], project));
  expect(collected.pools).toBe(20_000);
  return collected;
}

// V8 lets its young generation grow while much garbage is made, up to three times 16 MiB, which is no leak.
const YOUNG_STAYS_SMALL = ["--max-semi-space-size=1", "--single-threaded-gc"];
const YOUNG_MAX_BYTES = 3 * 16 * 2 ** 20;

describe("dropped pools are collected, disposed or not, after 20,000", () => {
  test("the process is as large as before, within 5 %, where the young generation is kept from growing", async () => {
    const { before, after } = await collect(...YOUNG_STAYS_SMALL);
    expect(after.rss).toBeLessThan(before.rss * 1.05);
  });

  test("with V8's own settings less than 52 bytes a pool stay in the heap, and the process is as large but for that generation", async () => {
    const { before, after } = await collect();
    expect(after.heapUsed).toBeLessThan(before.heapUsed + 2 ** 20);
    expect(after.rss).toBeLessThan(before.rss * 1.05 + YOUNG_MAX_BYTES); // the memories of 20,000 pools are 1.2 GiB
  });
});

test("1,000 pools live at once, and each knows its own blocks", async () => {
  expect(JSON.parse(await run(process.execPath, ["alive.js"], project))).toEqual({ right: 1_000, wrong: 0 });
});
