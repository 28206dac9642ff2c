import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as disagg from "../../src/disagg/index.js";
import * as errors from "../../src/errors.js";
import * as http from "../../src/http/index.js";
import * as main from "../../src/index.js";
import * as events from "../../src/selection/events.js";
import * as testing from "../../src/testing/index.js";

// An entry exports the errors that come out of it, and no others: the main entry would carry those of all others.

type Entry = Readonly<Record<string, unknown>>;

const ENTRIES: readonly (readonly [sources: RegExp, entry: Entry])[] = [
  [/^selection\/events/, events],
  [/^(core|selection|gateway)\//, main],
  [/^(disagg|transport)\//, disagg],
  [/^http\//, http],
  [/^(testing|sim\/engine)/, testing],
];

/** What the command line alone throws: it has no entry. */
const COMMAND_LINE = ["TraceError", "ReplayLimitError", "FileError", "ServeError"];

const src = new URL("../../src/", import.meta.url);
const classes = Object.keys(errors);

/** The errors that a file makes. */
const madeIn = (file: string) =>
  [...readFileSync(new URL(file, src), "utf8").matchAll(/\bnew (\w+Error)\(/g)]
    .map((match) => match[1] as string)
    .filter((name) => classes.includes(name));

const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));

describe("the entries", () => {
  test("export each error that comes out of their sources, or leave it to the main entry", () => {
    const lost = files.flatMap((file) => {
      const entry = ENTRIES.find(([sources]) => sources.test(file))?.[1];
      return entry === undefined
        ? []
        : madeIn(file)
            .filter((name) => !(name in entry || name in main))
            .map((name) => `${file}: ${name}`);
    });
    expect(lost).toEqual([]);
  });

  test("export every error somewhere but those of the command line, and the same class everywhere", () => {
    const everything = ENTRIES.map(([, entry]) => entry);
    const unexported = classes.filter((name) => !everything.some((entry) => name in entry));
    expect(unexported).toEqual(COMMAND_LINE);
    for (const entry of everything) {
      expect(entry["KvrouteError"]).toBe(errors.KvrouteError);
      for (const name of classes.filter((name) => name in entry)) expect(entry[name]).toBe(Reflect.get(errors, name));
    }
  });

  test("the main entry exports no error that cannot come out of it", () => {
    const own = files.filter((file) => ENTRIES.find(([sources]) => sources.test(file))?.[1] === main);
    const made = new Set([...own.flatMap(madeIn), "KvrouteError", "CopyError"]); // the bases
    expect(classes.filter((name) => name in main && !made.has(name))).toEqual([]);
  });
});
