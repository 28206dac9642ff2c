import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as errors from "../../src/errors.js";

const read = (relative: string) => readFileSync(new URL(`../../${relative}`, import.meta.url), "utf8");
const codesOf = (text: string) => new Set([...text.matchAll(/KVROUTE_[A-Z0-9_]+/g)].map((match) => match[0]));

const page = read("docs/errors.md");
const source = read("src/errors.ts");

describe("docs/errors.md", () => {
  test("lists every code, and no code that does not exist", () => {
    expect([...codesOf(page)].sort()).toEqual([...codesOf(source)].sort());
  });

  test("names every class beside a code of its own", () => {
    const rows = new Set([...page.matchAll(/^\| `(KVROUTE_\w+)` \| `(\w+)`/gm)].map((match) => match[2]));
    const bases = ["KvrouteError", "CopyError"]; // nobody throws these two themselves
    expect([...rows].sort()).toEqual(
      Object.keys(errors)
        .filter((name) => !bases.includes(name))
        .sort(),
    );
  });
});

describe("an error", () => {
  const error = new errors.MissingPrefixError(7n, 2);

  test("is an Error and a KvrouteError, and carries the name of its class", () => {
    expect(error).toBeInstanceOf(Error);
    expect(error).toBeInstanceOf(errors.KvrouteError);
    expect(error.name).toBe("MissingPrefixError");
  });

  test("says in a sentence what was expected and what came", () => {
    expect(error.message).toBe(
      "Expected every hash of the prefix to be resident, but 7 at index 2 is not. Ask matchPrefix or use reserveResidentPrefix.",
    );
  });

  test("keeps its cause", () => {
    const cause = new Error("no");
    expect(new errors.CoreUnavailableError(cause).cause).toBe(cause);
  });
});
