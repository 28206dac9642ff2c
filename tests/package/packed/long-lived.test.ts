import { expect, inject, test } from "vitest";
import { run } from "../../runtimes/outcome.js";

const project = inject("project");

/** The young generation stays small and collects where it stands: that V8 makes it larger over time is no leak. */
const GC = ["--expose-gc", "--max-semi-space-size=1", "--single-threaded-gc"];

test("dropped pools are collected, disposed or not: after 20,000 the process is as large as before, within 5 %", async () => {
  const { pools, before, after } = JSON.parse(await run(process.execPath, [...GC, "collect.js"], project));
  expect(pools).toBe(20_000);
  expect(after).toBeLessThan(before * 1.05);
});

test("1,000 pools live at once, and each knows its own blocks", async () => {
  expect(JSON.parse(await run(process.execPath, ["alive.js"], project))).toEqual({ right: 1_000, wrong: 0 });
});
