import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scale, scaled } from "../support/scale.js";
import { LEASE_MS, type Step, World } from "./selection-service-world.js";

const id = fc.nat(7);
const worker = fc.nat(3);
const model = fc.nat(1);
const prompt = fc.nat(4);
const output = fc.constantFrom(0, 0, 9);
const doing = <D extends Step["do"]>(what: D): fc.Arbitrary<D> => fc.constant(what);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: doing("add"), worker, model, ranks: fc.integer({ min: 1, max: 2 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("remove", "drain"), worker }) },
  { weight: 6, arbitrary: fc.record({ do: doing("select"), id, prompt, model, output }) },
  { weight: 6, arbitrary: fc.record({ do: doing("reserve"), id, model }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: doing("reserve on"), id, prompt, model, worker, rank: fc.nat(1), output }),
  },
  { weight: 5, arbitrary: fc.record({ do: doing("select and reserve"), id, prompt, model, output }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom("prefill complete", "touch", "free", "report"), id }) },
  { weight: 4, arbitrary: fc.record({ do: doing("output"), id, decay: fc.constantFrom(0, 0.3, 1) }) },
  { weight: 3, arbitrary: fc.record({ do: doing("wait"), ms: fc.constantFrom(1, LEASE_MS, LEASE_MS + 1, 130_000) }) },
);

function runAll(steps: readonly Step[]): void {
  const world = new World();
  for (const one of steps) world.run(one);
  world.finish();
}

describe("the selection service beside its model", () => {
  test("books, refuses, expires and counts alike, and ends at zero in every way", () => {
    const steps = fc.array(step, { minLength: 1, maxLength: 250, size: "max" });
    fc.assert(fc.property(steps, runAll), { numRuns: scaled(60) });
  }, 600_000);

  test("after every short sequence of calls of one request", () => {
    const first: Step[] = [
      { do: "add", worker: 0, model: 0, ranks: 2 },
      { do: "add", worker: 1, model: 0, ranks: 1 },
    ];
    const letters: Step[] = [
      { do: "select", id: 0, prompt: 2, model: 0, output: 0 },
      { do: "select", id: 0, prompt: 3, model: 0, output: 0 },
      { do: "reserve", id: 0, model: 0 },
      { do: "reserve on", id: 0, prompt: 2, model: 0, worker: 0, rank: 1, output: 0 },
      { do: "select and reserve", id: 0, prompt: 2, model: 0, output: 0 },
      { do: "prefill complete", id: 0 },
      { do: "output", id: 0, decay: 0.3 },
      { do: "free", id: 0 },
      { do: "wait", ms: LEASE_MS + 1 },
      { do: "remove", worker: 0 },
      { do: "drain", worker: 1 },
    ];
    let sequences = 0;
    const extend = (steps: readonly Step[], left: number): void => {
      if (left === 0) {
        runAll([...first, ...steps]);
        sequences++;
        return;
      }
      for (const letter of letters) extend([...steps, letter], left - 1);
    };
    const length = scale < 1 ? 2 : 3;
    extend([], length);
    expect(sequences).toBe(letters.length ** length);
  }, 120_000);
});
