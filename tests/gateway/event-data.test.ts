import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eventData } from "../../src/gateway/event-data.js";
import { scale } from "../support/scale.js";

/** What the library of that name reads, of whole events. */
function reference(text: string): string[] {
  const all: string[] = [];
  createParser({ onEvent: ({ data }) => all.push(data) }).feed(text);
  return all;
}

describe("the data of events", () => {
  test.each([
    ["data: a\n\n", ["a"]],
    ["data:a\n\ndata: b\n\n", ["a", "b"]],
    ["data:  two spaces\n\n", [" two spaces"]],
    ["data: first\ndata: second\n\n", ["first\nsecond"]],
    [": a comment\nevent: x\nid: 7\nretry: 5\ndata: a\n\n", ["a"]],
    ["data\n\n", [""]],
    ["data:\ndata\n\n", ["\n"]],
    ["event: x\n\n: only a comment\n\n", []],
    ["dataset: x\ndata : y\n data: z\n\n", []],
    ["data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]],
    ["\n\n\n", []],
    ["", []],
  ])("%j holds %j", (text, data) => {
    expect(eventData(text)).toEqual(data);
  });

  test("are what another parser reads, for any lines and ends of lines", () => {
    const words = [
      "data: a",
      "data:",
      "data",
      "data:  b: c",
      "event: e",
      "id: 1",
      ": comment",
      "datax: d",
      "",
      "data: 🦊",
    ];
    const line = fc.oneof(fc.constantFrom(...words), fc.string({ unit: "grapheme", maxLength: 8 }));
    const end = fc.constantFrom("\n", "\r\n", "\r");
    const lines = fc.array(fc.tuple(line, end), { maxLength: 24 });
    fc.assert(
      fc.property(lines, (written) => {
        const text = `${written.map(([line, end]) => line + end).join("")}\n\n`;
        expect(eventData(text)).toEqual(reference(text));
      }),
      { numRuns: Math.ceil(2_000 * scale) },
    );
  });
});
