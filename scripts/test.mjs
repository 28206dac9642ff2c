// Builds everything, runs every test runner, and ends with one line that sums them: "N passed, N failed".
// --quick: without the linter, on the shipped core only, and with a tenth of the random runs.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";

const quick = process.argv.includes("--quick");
const vitestReport = "build/vitest.json";

/** Runs a command with its output shown. Gives back whether it succeeded, and what it printed where that is read. */
function run(title, command, args, { capture = false, env = {} } = {}) {
  console.log(`\n== ${title}`);
  const stdio = ["ignore", capture ? "pipe" : "inherit", capture ? "pipe" : "inherit"];
  const result = spawnSync("npx", ["--no-install", command, ...args], {
    stdio,
    env: { ...process.env, ...env },
    encoding: "utf8",
    maxBuffer: 256 * 2 ** 20,
    timeout: 20 * 60_000, // a core that loops for ever is stopped, and has failed
  });
  const output = capture ? result.stdout + result.stderr : "";
  if (capture) process.stdout.write(output);
  return { ok: result.status === 0, output };
}

/** Runs the specs of the core. A run without its summary has failed: a spec did not compile, or the runner was killed. */
function aspect() {
  const config = ["-c", "as-tests/as-pect.config.js", "-a", "as-tests/as-pect.asconfig.json"];
  const { ok, output } = run("as-pect: the core from inside", "asp", [...config, "--summary", "--no-logo"], {
    capture: true,
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of the summary
  const plain = output.replace(/\u001b\[[0-9;]*m/g, "");
  const summary = /\[Tests\]:\s*(\d+)\s*\/\s*(\d+)/.exec(plain);
  const passed = Number(summary?.[1] ?? 0);
  const failed = Number(summary?.[2] ?? 0) - passed;
  return { passed, failed: ok && passed > 0 ? failed : Math.max(failed, 1), skipped: 0 };
}

function vitest() {
  rmSync(vitestReport, { force: true });
  const project = quick ? ["--project", "shipped"] : [];
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${vitestReport}`];
  const env = quick ? { KVROUTE_TEST_SCALE: "0.1" } : {};
  const { ok } = run("vitest: everything else", "vitest", ["run", ...project, ...reporters], { env });
  if (!existsSync(vitestReport)) return { passed: 0, failed: 1, skipped: 0 };
  const report = JSON.parse(readFileSync(vitestReport, "utf8"));
  const failed = report.numFailedTests + report.numFailedTestSuites * (report.numFailedTests === 0 ? 1 : 0);
  return {
    passed: report.numPassedTests,
    failed: ok ? failed : Math.max(failed, 1),
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

const build = run("build", "npm", ["run", "--silent", "build:all"]);
const lint = quick || run("lint and types", "npm", ["run", "--silent", "lint"]).ok;
const results = build.ok ? [aspect(), vitest()] : [];
if (!build.ok || !lint) results.push({ passed: 0, failed: 1, skipped: 0 });
const sum = (key) => results.reduce((total, result) => total + result[key], 0);

console.log(
  `\n${sum("passed")} passed, ${sum("failed")} failed${sum("skipped") > 0 ? `, ${sum("skipped")} skipped` : ""}`,
);
process.exitCode = sum("failed") > 0 ? 1 : 0;
