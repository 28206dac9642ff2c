import { expect } from "vitest";
import { alive, BARE, home, type Laws, law, put } from "./selection-cache-law.js";
import { pending } from "./selection-cache-subject.js";

export const lifeLaws: Laws = {
  claiming: [
    law("a peek finds what was inserted and leaves it there", (create) => {
      const cache = create({});
      const selection = pending(home, 3, { worker: { workerId: 18446744073709551615n, dpRank: 4 }, loraName: "x" });
      const generation = cache.insert("a", selection, 5);
      expect(cache.peek(home, "a", 5)).toEqual({ selection, generation });
      expect(cache.peek({ ...home }, "a", 6)?.selection).toBe(selection);
      expect([cache.peek(home, "b", 5), cache.size]).toEqual([null, 1]);
    }),
    law("a selection is claimed once", (create) => {
      const cache = create({});
      const generation = put(cache, "a", 0);
      expect([cache.remove(home, "a", generation), cache.remove(home, "a", generation)]).toEqual([true, false]);
      expect([alive(cache, "a", 0), cache.size, cache.totalBytes]).toEqual(["", 0, 0]);
    }),
    law("remove spares what a later insert has put there", (create) => {
      const cache = create({});
      const stale = put(cache, "a", 0);
      const generation = put(cache, "a", 1);
      expect(cache.remove(home, "a", stale)).toBe(false);
      expect(cache.peek(home, "a", 1)?.generation).toBe(generation);
      expect(cache.remove(home, "a", generation)).toBe(true);
    }),
    law("remove spares what has a generation still to come", (create) => {
      const cache = create({});
      expect([cache.remove(home, "a", put(cache, "a", 0) + 1), cache.size]).toEqual([false, 1]);
    }),
    law("discard takes whatever has the id", (create) => {
      const cache = create({});
      put(cache, "a", 0);
      put(cache, "a", 1);
      expect([cache.discard(home, "a"), cache.discard(home, "a"), cache.size]).toEqual([true, false, 0]);
    }),
  ],
  age: [
    law("an age of ttlMs is alive, any more is not", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 0);
      expect([alive(cache, "a", 10), alive(cache, "a", 10.5)]).toEqual(["a", ""]);
    }),
    law("with a ttlMs of 0 a selection is alive in its own instant only", (create) => {
      const cache = create({ ttlMs: 0 });
      put(cache, "a", 7);
      expect([alive(cache, "a", 7), alive(cache, "a", 8)]).toEqual(["a", ""]);
    }),
    law("a clock that runs backwards makes nothing expire", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 1_000);
      put(cache, "b", 0);
      expect(alive(cache, "ab", 0)).toBe("ab");
      expect(alive(cache, "ab", 1_010)).toBe("a");
    }),
    law("a peek removes nothing, however old", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 0);
      expect([alive(cache, "a", 11), cache.size, alive(cache, "a", 0)]).toEqual(["", 1, "a"]);
    }),
    law("remove and discard do not ask for the age", (create) => {
      const cache = create({ ttlMs: 10 });
      const generation = put(cache, "a", 0);
      put(cache, "b", 0);
      expect(alive(cache, "ab", 11)).toBe("");
      expect([cache.remove(home, "a", generation), cache.discard(home, "b")]).toEqual([true, true]);
    }),
    law("an insert sweeps what has expired, and only that", (create) => {
      const cache = create({ ttlMs: 10 });
      for (const [at, id] of [..."abc"].entries()) put(cache, id, at);
      put(cache, "d", 12);
      expect([cache.size, cache.totalBytes, alive(cache, "abcd", 12)]).toEqual([2, 2 * BARE, "cd"]);
    }),
    law("an insert sweeps before it adds: what comes expired stays, unseen, until the next", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 100, 0);
      expect([cache.size, alive(cache, "a", 100), alive(cache, "a", 10)]).toEqual([1, "", "a"]);
      put(cache, "b", 100);
      expect([cache.size, alive(cache, "a", 10)]).toEqual([1, ""]);
    }),
    law("the time of the insert drives the sweep, whatever its anchor", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 0);
      put(cache, "b", 10, 100);
      expect(cache.size).toBe(2);
      put(cache, "c", 11, 0);
      expect([cache.size, alive(cache, "abc", 5)]).toEqual([2, "bc"]);
    }),
    law("the anchor decides on the age, not the insert", (create) => {
      const cache = create({ ttlMs: 10 });
      put(cache, "a", 0, 5);
      put(cache, "b", 0, -5);
      expect([alive(cache, "ab", 5), alive(cache, "ab", 6), alive(cache, "ab", 15)]).toEqual(["ab", "a", "a"]);
    }),
  ],
};
