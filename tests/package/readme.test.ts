import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

test("the example of the README runs on the built package and prints what it says", () => {
  const example = /```ts\n(import \{ BlockPool \}[\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const said = /console\.log\(.*\);\s*\/\/ (.*)/.exec(example)?.[1];
  const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", example], {
    cwd: root,
    encoding: "utf8",
  });
  expect(printed.trim()).toBe(said);
});
