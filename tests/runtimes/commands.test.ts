import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { ROWS } from "../package/runtime-table.js";
import { expectPassed } from "./outcome.js";
import { run } from "./process.js";
import { PROGRAMS } from "./programs.js";

const project = inject("project");
const binaries = inject("binaries");

const program = (name: keyof typeof PROGRAMS) =>
  "folder" in binaries ? join(binaries.folder, "node_modules", PROGRAMS[name]) : "";

const INLINE = "base64, compiled at first use";

const nodes = [
  { row: ROWS[0], node: process.execPath },
  ...(["Node 22", "Node 24", "Node 26"] as const).map((row) => ({ row, node: program(row) })),
];

describe.each(nodes)("the packed package in $row", ({ row, node }) => {
  test.skipIf(node === "")("passes the portable suite when it is imported", async () => {
    const printed = await run(node, ["import.js"], project);
    if (node !== process.execPath) expect(printed).toContain(`${row}.`);
    expectPassed(printed, { runtime: row, core: INLINE });
  });

  test.skipIf(node === "")("passes the portable suite when it is required", async () => {
    expectPassed(await run(node, ["--no-warnings", "require.cjs"], project), { runtime: row, core: INLINE });
  });
});

describe("the packed package", () => {
  test("passes the portable suite in a worker thread of Node", async () => {
    expectPassed(await run(process.execPath, ["thread.js"], project), { runtime: "Node, worker thread", core: INLINE });
  });

  test.skipIf(program("Deno") === "")(
    "passes the portable suite in Deno, which may read files and no more",
    async () => {
      const args = ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual", "--allow-read=.", "import.js"];
      expectPassed(await run(program("Deno"), args, project), { runtime: "Deno", core: INLINE });
    },
  );

  test.skipIf(program("Bun") === "")("passes the portable suite in Bun", async () => {
    expectPassed(await run(program("Bun"), ["run", "import.js"], project), { runtime: "Bun", core: INLINE });
  });
});
