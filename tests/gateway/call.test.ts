import { expect, test } from "vitest";
import { Call } from "../../src/gateway/call.js";
import { VirtualClock } from "../../src/sim/clock.js";

function makeCall() {
  const clock = new VirtualClock();
  const outcomes: string[] = [];
  const call = new Call({
    ...{ clock, firstByteTimeoutMs: 1_000, stallTimeoutMs: 10, caller: undefined, workerId: "a" },
    onSettled: (outcome) => outcomes.push(outcome),
    onAlive: () => {},
  });
  return { call, clock, outcomes };
}

test("an answer that begins when its call has been cut keeps no timer", () => {
  const { call, clock, outcomes } = makeCall();
  call.begin();
  expect(clock.pending).toBe(1);
  call.cut("aborted", new Error("gone"));
  call.begun();
  expect(clock.pending).toBe(0);
  expect(outcomes).toEqual(["aborted"]);
});

test("whoever asks later when it was settled is told at once", async () => {
  const { call } = makeCall();
  const before = call.settled;
  call.settle("completed");
  await before;
  const { call: other } = makeCall();
  other.settle("completed");
  await other.settled;
});
