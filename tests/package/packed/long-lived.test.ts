import { describe, expect, inject, test } from "vitest";
import { run } from "../../runtimes/process.js";

const project = inject("project");

// V8 lets its young generation grow from 1 to 16 MiB a half in a process that makes much garbage, which is no leak. So the
// claim is made twice: where that generation has its size from the beginning, and where it has had the time to grow.
const GC = ["--expose-gc"];
const YOUNG_STAYS_SMALL = ["--max-semi-space-size=1", "--single-threaded-gc"];

describe("dropped pools are collected, disposed or not: after 20,000 the process is as large as before, within 5 %", () => {
  test.each([
    { process: "whose young generation is as small as at first", flags: YOUNG_STAYS_SMALL, thousandsBefore: 2 },
    { process: "with V8's own settings, once it has made as many before", flags: [], thousandsBefore: 20 },
  ])("in a process $process", async ({ flags, thousandsBefore }) => {
    const args = [...GC, ...flags, "collect.js", String(thousandsBefore)];
    const { pools, before, after } = JSON.parse(await run(process.execPath, args, project));
    expect(pools).toBe(20_000);
    expect(after).toBeLessThan(before * 1.05);
  });
});

test("1,000 pools live at once, and each knows its own blocks", async () => {
  expect(JSON.parse(await run(process.execPath, ["alive.js"], project))).toEqual({ right: 1_000, wrong: 0 });
});
