import { test } from "vitest";
import { replayTrace } from "../conformance/replay.js";
import { readTraces } from "../conformance/trace.js";
import { explore, filled } from "./explorer.js";
import { laws } from "./laws/all.js";
import { mutants } from "./mutants.js";
import { randomWalk } from "./random-walk.js";
import { extreme, growing, small } from "./spaces.js";

const caught = (f: () => void) => {
  const t = performance.now();
  try {
    f();
    return "-";
  } catch {
    return "X" + Math.round(performance.now() - t);
  }
};
test("matrix", () => {
  const traces = readTraces().filter((t) => t.lines.length < 5000);
  for (const m of mutants) {
    const tr = traces.filter((t) => caught(() => replayTrace(m, t, 1000)) !== "-").length;
    const lw = Object.values(laws)
      .flat()
      .filter(({ holds }) => caught(() => holds((o) => m.create(o))) !== "-")
      .map((l) => l.title);
    const ex = [1, 2, 3].map((capacity) => caught(() => explore(m, { capacity, depth: 5 })));
    const fl = ["AA", "AB", "AAB"].map((s) =>
      caught(() => explore(m, { capacity: s.length, depth: 3, start: filled(s) })),
    );
    const w = [small, extreme, growing].map((space) =>
      [1, 2, 3].map((seed) =>
        caught(() =>
          randomWalk(m, {
            space,
            runs: space === growing ? 60 : 300,
            commandsMax: 120,
            replay: { seed },
            shrink: false,
          }),
        ),
      ),
    );
    console.log(
      m.name.padEnd(28),
      "traces",
      tr,
      "laws",
      lw.length,
      "exh",
      ex.join(","),
      "filled",
      fl.join(","),
      "walk",
      w.map((x) => x.join(",")).join(" | "),
      lw.length ? "" : "NO LAW",
    );
  }
}, 600000);
