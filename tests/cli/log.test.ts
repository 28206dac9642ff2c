import { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Lines } from "../../src/cli/serve/lines.js";
import { createLog } from "../../src/cli/serve/log.js";
import { until } from "../support/until.js";

/** A stream whose reader takes what it is told to. */
class Reader extends Writable {
  readonly writes: string[] = [];
  /** Characters that it is done with. */
  taken = 0;
  isStuck = false;
  #done: (() => void) | undefined;

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.writes.push(chunk);
    const take = () => {
      this.taken += chunk.length;
      done();
    };
    if (this.isStuck) this.#done = take;
    else take();
  }

  goOn(): void {
    this.isStuck = false;
    const done = this.#done;
    this.#done = undefined;
    done?.();
  }

  get text(): string {
    return this.writes.join("");
  }
}

describe("lines", () => {
  test("of one turn are one write, in their order", async () => {
    const reader = new Reader();
    const lines = new Lines(reader, () => undefined);
    for (const line of ["a\n", "b\n", "c\n"]) lines.write(line);
    expect(reader.writes).toEqual([]);
    await until(() => reader.writes.length > 0, "the lines are written");
    expect(reader.writes).toEqual(["a\nb\nc\n"]);
  });

  test("that wait are written at the end", async () => {
    const reader = new Reader();
    const lines = new Lines(reader, () => undefined);
    lines.write("a\n");
    await lines.end();
    expect(reader.text).toBe("a\n");
    await lines.end();
    expect(reader.text).toBe("a\n");
  });

  test("are dropped, counted and told of while the reader is stuck, and no more when it goes on", async () => {
    const reader = new Reader();
    const told: number[] = [];
    const lines = new Lines(reader, (count) => told.push(count), 10);
    reader.isStuck = true;
    lines.write("12345678\n"); // 9 of 10 bytes
    lines.write("\n"); // 10 of 10
    lines.write("\n"); // one too many
    await until(() => reader.writes.length === 1, "the reader has the first");
    lines.write("x\n");
    expect(told).toEqual([]);
    reader.goOn();
    await until(() => reader.writableLength === 0, "the reader has taken it");
    lines.write("y\n");
    expect(told).toEqual([2]);
    lines.write("z\n");
    expect(told).toEqual([2]);
    await lines.end();
    expect(reader.text).toBe("12345678\n\ny\nz\n");
  });

  test("come out as a naive model says, whatever the reader does", async () => {
    const most = 20;
    const operation = fc.oneof(
      fc.nat({ max: 12 }).map((length) => ({ do: "write" as const, line: `${"x".repeat(length)}\n` })),
      fc.constantFrom({ do: "turn" as const }, { do: "stick" as const }, { do: "goOn" as const }),
    );
    const property = fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
      const reader = new Reader();
      let told = 0;
      const lines = new Lines(reader, (count) => (told += count), most);
      const model = { accepted: "", refused: 0, untold: 0 };
      for (const step of operations) {
        if (step.do === "turn") await new Promise((resolve) => setImmediate(resolve));
        else if (step.do === "stick") reader.isStuck = true;
        else if (step.do === "goOn") reader.goOn();
        else {
          const waiting = model.accepted.length - reader.taken;
          lines.write(step.line);
          if (waiting + step.line.length > most) model.untold++;
          else {
            model.accepted += step.line;
            model.refused += model.untold;
            model.untold = 0;
          }
        }
        expect(told).toBe(model.refused);
        expect(model.accepted.startsWith(reader.text)).toBe(true);
      }
      reader.goOn();
      await lines.end();
      expect(reader.text).toBe(model.accepted);
    });
    await fc.assert(property);
  });

  test("have nowhere to go when the reader has gone, and that is all", async () => {
    const reader = new Reader();
    const lines = new Lines(reader, () => undefined);
    reader.destroy();
    lines.write("a\n");
    await lines.end();
    expect(reader.writes).toEqual([]);
  });
});

describe("a log", () => {
  test("is one JSON object a line, with its level as a word and the time", async () => {
    const reader = new Reader();
    const { logger, end } = createLog(reader, "info");
    logger.info({ worker: "a" }, "request");
    logger.debug("not this");
    logger.warn("watch out");
    await end();
    const [first, second, ...rest] = reader.text.trim().split("\n");
    expect(JSON.parse(first as string)).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      worker: "a",
      msg: "request",
    });
    expect(JSON.parse(second as string)).toMatchObject({ level: "warn", msg: "watch out" });
    expect(rest).toEqual([]);
  });

  test("is silent where it is told to be", async () => {
    const reader = new Reader();
    const { logger, end } = createLog(reader, "silent");
    logger.error("nobody hears it");
    await end();
    expect(reader.text).toBe("");
  });

  test("says that lines were dropped, in a line", async () => {
    const reader = new Reader();
    const { logger, end } = createLog(reader, "info");
    reader.isStuck = true;
    const long = "x".repeat(1_000_000);
    for (let line = 0; line < 12; line++) logger.info(long);
    await until(() => reader.writes.length === 1, "the reader has the first lines");
    reader.goOn();
    await until(() => reader.writableLength === 0, "the reader has taken them");
    logger.info("again");
    await end();
    const last = reader.text
      .trim()
      .split("\n")
      .slice(-2)
      .map((line) => JSON.parse(line));
    expect(last).toMatchObject([{ msg: "again" }, { level: "warn", lines: 4 }]);
  });
});
