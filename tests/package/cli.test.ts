import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built program with a text on its standard input, and closes its output after so many bytes, if told to. */
const kvroute = (argv: readonly string[], stdin = "", closeAfterBytes = Number.POSITIVE_INFINITY): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, ...argv], { stdio: "pipe" });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      if (stdout.length >= closeAfterBytes) child.stdout.destroy();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.on("error", () => undefined); // the program may end before it has read everything
    child.stdin.end(stdin);
  });

const ROW = `${JSON.stringify({ timestamp: 0, input_length: 1024, output_length: 1, hash_ids: [1, 2] })}\n`;

beforeAll(() => {
  if (!existsSync(CLI)) throw new Error("Expected dist/cli.js, got nothing there. Run `npm run build` first.");
});

describe("the built command line", () => {
  test("starts with a shebang and says its version", async () => {
    expect(readFileSync(CLI, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    expect(await kvroute(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("replays standard input on the shipped core, without colour or progress in a pipe", async () => {
    const { code, stdout, stderr } = await kvroute(["replay", "-", "--workers", "1"], ROW + ROW);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/│ round-robin +│ +50\.00 % │/);
    expect(stdout).not.toContain("\u001b");
  });

  test("replays with time on the shipped core: prefills queue up, and what is booked is released", async () => {
    const later = ROW.replace('"timestamp":0', '"timestamp":1000');
    const argv = ["replay", "-", "--json", "--workers", "1", "--policy", "kv,dynamo", "--utilisation", "0.5"];
    const { code, stdout } = await kvroute(argv, ROW + ROW + later);
    expect(code).toBe(0);
    const { timing, policies } = JSON.parse(stdout);
    expect(timing.prefillRate).toBe(2052); // 1,024 tokens, 1 and 1, in half of a second
    for (const { hitRate, delayMs } of policies) {
      expect(hitRate).toBeCloseTo(4 / 6);
      expect(delayMs.mean).toBeCloseTo(1000 * ((1024 + 1025 + 1) / 2052 / 3));
    }
  });

  test("ends with 1 at bad input and with 2 at a wrong command, with one line each", async () => {
    const bad = await kvroute(["replay", "-"], `${ROW}{"timestamp":1}\n`);
    expect(bad).toEqual({
      code: 1,
      stdout: "",
      stderr: 'kvroute: standard input:2: field "input_length" is missing\n',
    });
    const wrong = await kvroute(["replay", "-", "--workers", "0"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr.split("\n")).toHaveLength(2);
  });

  test("ends quietly when its reader has gone", async () => {
    const { code, stderr } = await kvroute(["generate", "--requests", "100000"], "", 100);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("has a demo that ends with what to try next", async () => {
    const { code, stdout } = await kvroute(["demo"]);
    expect(code).toBe(0);
    expect(stdout).toContain("What to try next:");
  });
});
