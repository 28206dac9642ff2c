import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
// Those in folders of their own are for other runtimes: tests/runtimes and tests/browser run them.
const examples = readdirSync(new URL("../../examples", import.meta.url))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replace(/\.ts$/, ""));

/** What each example prints, in part. */
const PRINTS: Record<string, RegExp> = {
  "disagg-worker-threads":
    /^stressed backwards is desserts\nand another answer came concurrently!\n2 requests complete, 0 in flight\n$/,
  "select-and-reserve": /chat-1 goes to engine-a[\s\S]*after free/,
};

describe("the examples, on the built package", () => {
  beforeAll(() => {
    try {
      execFileSync("npx", ["--no-install", "tsc", "-p", "tsconfig.examples.json"], { cwd: root, encoding: "utf8" });
    } catch (error) {
      throw new Error(`Expected the examples to compile:\n${(error as { stdout?: string }).stdout}`);
    }
  }, 60_000);

  test.each(examples)("%s prints what it should", (name) => {
    const file = `build/examples/${name}.js`;
    const printed = execFileSync(process.execPath, [file], { cwd: root, encoding: "utf8", timeout: 30_000 });
    expect(printed).toMatch(PRINTS[name] as RegExp);
  });
});
