import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Inbox } from "../../src/transport/inbox.js";
import { Listeners } from "../../src/transport/listeners.js";
import { scaled } from "../support/scale.js";
import { parcel } from "./hostile-guest.js";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** An inbox, and what its receiver sees of it, in order: sources of envelopes, and losses as negative ranks. */
function watched() {
  const inbox = new Inbox();
  const seen: number[] = [];
  const taken: number[] = [];
  inbox.losses.add((rank) => seen.push(-rank));
  const origin = { taken: ({ source }: { source: number }) => taken.push(source) };
  return {
    inbox,
    seen,
    taken,
    put: (source: number) => inbox.put(parcel(source, 0), origin),
    lose: (rank: number) => inbox.lose(rank, new Error("gone")),
  };
}

describe("news of a loss", () => {
  test("waits for what the rank sent before, and for the work on it", async () => {
    const { inbox, seen, put, lose } = watched();
    put(1);
    lose(1);
    const arrivals = inbox.receive()[Symbol.asyncIterator]();
    seen.push((await arrivals.next()).value?.source ?? 0);
    expect(seen).toEqual([1]);
    const next = arrivals.next();
    expect(seen).toEqual([1, -1]);
    lose(2); // somebody waits, and nothing is left
    expect(seen).toEqual([1, -1, -2]);
    put(3);
    lose(3); // somebody works on the last
    expect([(await next).value?.source, seen.length]).toEqual([3, 3]);
    void arrivals.next();
    expect(seen).toEqual([1, -1, -2, -3]);
  });

  test("of a rank that was lost before and came back takes the place of the old", async () => {
    const { inbox, seen, put, lose } = watched();
    put(9);
    for (let time = 0; time < 1_000; time++) lose(1);
    put(1);
    lose(1);
    inbox.end(null);
    for await (const { source } of inbox.receive()) seen.push(source);
    expect(seen).toEqual([9, 1, -1]);
  });

  test("that ends the iteration, by its listener, loses nothing", async () => {
    const { inbox, put, lose, seen } = watched();
    put(1);
    lose(1);
    const arrivals = inbox.receive()[Symbol.asyncIterator]();
    await arrivals.next();
    inbox.losses.add(() => void arrivals.return?.());
    expect(await arrivals.next()).toEqual({ done: true, value: undefined });
    put(2);
    inbox.end(null);
    for await (const { source } of inbox.receive()) seen.push(source);
    expect(seen).toEqual([-1, 2]);
  });
});

test("an inbox does what a plain list does, whatever is put, lost and taken", async () => {
  const step = fc.oneof(
    fc.record({ verb: fc.constant("put" as const), rank: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ verb: fc.constant("lose" as const), rank: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ verb: fc.constant("take" as const), rank: fc.constant(0) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 200, size: "max" }), async (steps) => {
      const { inbox, seen, taken, put, lose } = watched();
      const arrivals = inbox.receive()[Symbol.asyncIterator]();
      let list: number[] = []; // what is to be seen, in order; a loss that is untold goes when a later one comes
      const wanted: number[] = [];
      const tell = () => {
        while ((list[0] ?? 1) < 0) wanted.push(list.shift() as number);
      };
      for (const { verb, rank } of steps) {
        if (verb === "put") {
          put(rank);
          list.push(rank);
        } else if (verb === "lose") {
          lose(rank);
          list = [...list.filter((one) => one !== -rank), -rank];
        } else if (list.some((one) => one > 0)) {
          tell();
          wanted.push(list.shift() as number);
          seen.push((await arrivals.next()).value?.source ?? 0);
        }
        expect(seen).toEqual(wanted);
      }
      inbox.end(null);
      for (let next = await arrivals.next(); !next.done; next = await arrivals.next()) seen.push(next.value.source);
      expect(seen).toEqual([...wanted, ...list]);
      expect(taken).toEqual(seen.filter((one) => one > 0));
    }),
    { numRuns: scaled(500) },
  );
});

test("a listener that throws is reported as uncaught, and hinders nobody", () => {
  const later: (() => void)[] = [];
  vi.stubGlobal("queueMicrotask", (callback: () => void) => later.push(callback));
  const listeners = new Listeners<[number]>();
  const heard: number[] = [];
  listeners.add(() => {
    throw new Error("not my day");
  });
  listeners.add((value) => heard.push(value));
  listeners.tell(7);
  expect(heard).toEqual([7]);
  expect(() => later[0]?.()).toThrow("not my day");
});

describe("what was taken", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;

  test("is not kept: neither behind what waits, nor when nothing waits", async () => {
    const { inbox } = watched();
    const origin = { taken: () => undefined };
    const memories: WeakRef<Uint8Array>[] = [];
    const put = (id: number) => {
      const envelope = { ...parcel(1, id), bytes: new Uint8Array(1_000) };
      memories.push(new WeakRef(envelope.bytes));
      inbox.put(envelope, origin);
    };
    for (let id = 0; id < 4; id++) put(id);
    const arrivals = inbox.receive()[Symbol.asyncIterator]();
    const takeOne = async () => {
      await arrivals.next();
    };
    const kept = async () => {
      for (let steps = 0; steps < 2; steps++) await new Promise((resolve) => setImmediate(resolve)); // a WeakRef holds until its step is over
      collect();
      return memories.map((memory) => memory.deref() !== undefined);
    };
    for (let id = 0; id < 3; id++) await takeOne();
    expect(await kept()).toEqual([false, false, false, true]);
    await takeOne();
    expect(await kept()).toEqual([false, false, false, false]);
  });
});
