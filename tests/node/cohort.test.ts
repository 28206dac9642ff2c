import { expect, test } from "vitest";
import { Cohort } from "../../src/node/gateway/cohort.js";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("who joins in one turn goes on in one turn, in the order of joining", async () => {
  const cohort = new Cohort();
  const gone: string[] = [];
  cohort.join(() => gone.push("first"));
  queueMicrotask(() => cohort.join(() => gone.push("third")));
  cohort.join(() => gone.push("second"));
  await Promise.resolve();
  expect(gone).toEqual([]);
  await nextTurn();
  expect(gone).toEqual(["first", "second", "third"]);
});

test("who joins while a cohort goes on belongs to the next one", async () => {
  const cohort = new Cohort();
  const gone: string[] = [];
  cohort.join(() => {
    gone.push("first");
    cohort.join(() => gone.push("behind"));
  });
  cohort.join(() => gone.push("second"));
  await nextTurn();
  expect(gone).toEqual(["first", "second"]);
  await nextTurn();
  expect(gone).toEqual(["first", "second", "behind"]);
});

test("those who have gathered take each of their steps together", async () => {
  const cohort = new Cohort();
  const steps: string[] = [];
  const walk = async (name: string) => {
    await cohort.gathered();
    steps.push(`${name}1`);
    await undefined;
    steps.push(`${name}2`);
  };
  await Promise.all([walk("a"), walk("b"), walk("c")]);
  expect(steps).toEqual(["a1", "b1", "c1", "a2", "b2", "c2"]);
});
