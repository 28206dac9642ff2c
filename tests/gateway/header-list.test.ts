import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";

const name = fc.constantFrom("a", "b", "set-cookie", "x-long-name");
const value = fc.constantFrom("", "1", "two", "3, 4");
const change = fc.oneof(
  fc.record({ verb: fc.constantFrom("append" as const, "set" as const), name, value }),
  fc.record({ verb: fc.constant("delete" as const), name }),
);

/** A list of pairs, with the rules of `Headers` that a `HeaderList` keeps. */
class NaiveHeaders {
  pairs: [string, string][] = [];

  get(name: string): string | null {
    const values = this.pairs.filter(([each]) => each === name).map(([, each]) => each);
    return values.length === 0 ? null : values.join(", ");
  }

  delete(name: string): void {
    this.pairs = this.pairs.filter(([each]) => each !== name);
  }
}

describe("a list of headers", () => {
  test("does what a list of pairs does", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const list = HeaderList.of();
        const naive = new NaiveHeaders();
        for (const each of changes) {
          if (each.verb !== "append") naive.delete(each.name);
          if (each.verb !== "delete") naive.pairs.push([each.name, each.value]);
          if (each.verb === "delete") list.delete(each.name);
          else list[each.verb](each.name, each.value);
          expect([...list]).toEqual(naive.pairs);
          expect(list.toPairs()).toEqual(naive.pairs);
          expect(list.toRaw()).toEqual(naive.pairs.flat());
          expect(list.size).toBe(naive.pairs.length);
          for (const [asked] of [...naive.pairs, ["absent"]] as [string][]) {
            expect(list.get(asked)).toBe(naive.get(asked));
            expect(list.has(asked)).toBe(naive.get(asked) !== null);
          }
        }
      }),
    );
  });

  test("is copied, so that neither changes the other", () => {
    const one = HeaderList.of([["a", "1"]]);
    const other = one.copy();
    other.set("a", "2");
    one.append("b", "3");
    expect([[...one], [...other]]).toEqual([
      [
        ["a", "1"],
        ["b", "3"],
      ],
      [["a", "2"]],
    ]);
  });

  test("is made of what Node has of a message, its names in lower case", () => {
    expect([...HeaderList.ofRaw(["X-A", "One", "Set-Cookie", "a=1", "set-cookie", "b=2"])]).toEqual([
      ["x-a", "One"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ]);
  });
});
