import { describe, expect, test } from "vitest";
import { boundLaws } from "./selection-cache-laws-bounds.js";
import { lifeLaws } from "./selection-cache-laws-life.js";
import { naiveCache } from "./selection-cache-naive.js";
import { type CacheSubject, type CacheUnderTest, pending, selectionCache } from "./selection-cache-subject.js";

const home = { modelName: "model", routingGroup: "default" };

function obeys<C extends CacheUnderTest>(subject: CacheSubject<C>): void {
  for (const [about, group] of Object.entries({ ...lifeLaws, ...boundLaws })) {
    describe(`${subject.name}, ${about}`, () => {
      for (const { title, holds } of group) {
        test(title, () => {
          const caches: C[] = [];
          holds((options) => {
            const cache = subject.create(options);
            caches.push(cache);
            return cache;
          });
          for (const cache of caches) expect(subject.order(cache)).toHaveLength(cache.size);
        });
      }
    });
  }
}

obeys(naiveCache);
obeys(selectionCache);

describe("SelectionCache, the order index", () => {
  test("holds one entry when fifty were consumed behind one that nobody claims", () => {
    const cache = selectionCache.create({ maxEntries: 1_024 });
    cache.insert("pinned", pending(home, 3), 0);
    for (let at = 1; at <= 50; at++) {
      const generation = cache.insert(`req-${at}`, pending(home, 3), at);
      expect(cache.remove(home, `req-${at}`, generation)).toBe(true);
    }
    expect(cache.size).toBe(1);
    expect(selectionCache.order(cache)).toEqual([["model", "default", "pinned", 0, 0, 3 * 8 + 18]]);
  });

  test("holds one entry when fifty late ones were consumed before one that is never claimed", () => {
    const cache = selectionCache.create({ maxEntries: 1_024 });
    cache.insert("pinned", pending(home, 3), 100);
    for (let at = 50; at >= 1; at--) {
      const generation = cache.insert(`req-${at}`, pending(home, 3), 100, at);
      expect(cache.remove(home, `req-${at}`, generation)).toBe(true);
    }
    expect(selectionCache.orderLength(cache)).toBe(1);
  });

  test("never holds more than maxEntries, whatever the anchors", () => {
    const cache = selectionCache.create({ maxEntries: 16 });
    for (let at = 0; at < 1_000; at++) {
      cache.insert(`req-${at}`, pending(home, 0), 1_000, (at * 379) % 1_000);
      expect(selectionCache.orderLength(cache)).toBe(Math.min(16, at + 1));
    }
  });
});
