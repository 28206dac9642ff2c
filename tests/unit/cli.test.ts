import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProgress } from "../../src/cli/progress.js";
import { formatCount } from "../../src/cli/report.js";
import { run } from "../../src/cli/run.js";
import { VERSION } from "../../src/cli/version.js";
import { KvrouteError } from "../../src/errors.js";
import { POLICY_NAMES } from "../../src/selection/policy.js";

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface World {
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  readonly isTTY?: boolean;
  readonly env?: Record<string, string>;
  readonly now?: () => number;
}

class Sink extends Writable {
  text = "";
  isTTY: boolean | undefined;

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.text += new TextDecoder().decode(chunk);
    done();
  }
}

/** A pipe whose reader has gone, as after `| head`. */
const closedPipe = (): Writable =>
  new Writable({
    write(_chunk, _encoding, done) {
      done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    },
  }).on("error", () => undefined);

const kvroute = async (argv: readonly string[], world: World = {}): Promise<Outcome> => {
  const stdout = new Sink();
  const stderr = new Sink();
  stderr.isTTY = world.isTTY;
  let clockMs = 0;
  const code = await run({
    argv,
    env: world.env ?? {},
    stdin: world.stdin ?? Readable.from([]),
    stdout: world.stdout ?? stdout,
    stderr,
    now: world.now ?? (() => clockMs++),
    onSignal: () => () => undefined,
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
};

const row = (...ids: readonly number[]): string =>
  `${JSON.stringify({ timestamp: 0, input_length: ids.length * 512, output_length: 1, hash_ids: ids })}\n`;

const GOOD = row(1, 2) + row(1, 2, 3) + row(4) + row();

let folder: string;
const file = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kvroute-cli-"));
  await writeFile(file("good.jsonl"), GOOD);
  await writeFile(file("good.jsonl.gz"), gzipSync(GOOD));
  await writeFile(file("gzipped-without-saying-so"), gzipSync(GOOD));
  await writeFile(file("two-members.gz"), Buffer.concat([gzipSync(GOOD), gzipSync(GOOD)]));
  await writeFile(file("cut.jsonl.gz"), gzipSync(GOOD).subarray(0, 40));
  await writeFile(file("empty.jsonl"), "");
  await writeFile(file("bad.jsonl"), `${row(1)}${row(2).replace("512", "-5")}nonsense\n${row(3)}`);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("kvroute replay", () => {
  test("prints one JSON object with --json", async () => {
    const { code, stdout, stderr } = await kvroute(
      ["replay", file("good.jsonl"), "--json", "--workers", "2", "--policy", "round-robin,prefix-hash"],
      { now: () => 0 },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({
      trace: file("good.jsonl"),
      requests: 4,
      workers: 2,
      blocksPerWorker: 4_000,
      seed: 0,
      emptyRequests: 1,
      skipped: 0,
    });
    expect(report.policies).toHaveLength(2);
    expect(report.policies[0]).toEqual({
      policy: "round-robin",
      hitRate: 0,
      imbalance: 1,
      evictions: 0,
      missedBlocks: [3, 3],
      requestsPerSecond: 0,
      rejected: 0,
    });
    expect(report.policies[1]).toMatchObject({ policy: "prefix-hash", hitRate: 1 / 3 });
  });

  test("says what it did and what the columns mean, without colour", async () => {
    const { code, stdout, stderr } = await kvroute(["replay", file("good.jsonl"), "--blocks", "2"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`Replayed 4 requests (6 prompt blocks, 0 s of traffic) from ${file("good.jsonl")}\n`);
    expect(stdout).toContain("on 8 workers, each with a KV cache of 2 blocks, once for every routing policy.");
    expect(stdout).toMatch(/│ round-robin +│ +0\.00 % │ +5\.33 │ +0 │ +3 │ +[\d,]+ │/);
    for (const column of ["hit rate", "imbalance", "evictions", "blocks computed", "requests/s"]) {
      expect(stdout).toMatch(new RegExp(`^${column} +\\w`, "m"));
    }
    expect(stdout).toContain("1 request without a full block: routed, but nothing to cache.");
    expect(stdout).toContain("1 request with more blocks than the cache of a worker: rejected, not counted.");
    expect(stdout).not.toContain("\u001b");
  });

  describe("with time", () => {
    // Blocks of 512 tokens at 512 tokens a second; the second request waits for the first.
    const timed = [
      { timestamp: 0, input_length: 1024, output_length: 40, hash_ids: [1, 2] },
      { timestamp: 1000, input_length: 1536, output_length: 0, hash_ids: [1, 2, 3] },
    ];
    const stdin = (): Readable => Readable.from([Buffer.from(timed.map((one) => JSON.stringify(one)).join("\n"))]);
    const one = ["--workers", "1", "--policy", "round-robin"];

    test("prints delays, windows and the rate with --json", async () => {
      const argv = ["replay", "-", "--json", "--prefill-rate", "512", ...one];
      const { code, stdout, stderr } = await kvroute(argv, { stdin: stdin() });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const report = JSON.parse(stdout);
      expect(report.timing).toEqual({
        prefillRate: 512,
        decodeMsPerToken: 25,
        closedLoop: false,
        hold: false,
        unit: "token",
      });
      expect(report.policies[0]).toMatchObject({ windowImbalance: 1, delayMs: { mean: 2000, p50: 2000, p99: 2000 } });
      expect(Object.keys(report.policies[0].delayMs)).toEqual(["mean", "p50", "p90", "p99"]);
    });

    test("says nothing of them without a rate", async () => {
      const { stdout } = await kvroute(["replay", "-", "--json", ...one], { stdin: stdin() });
      const report = JSON.parse(stdout);
      expect(report).not.toHaveProperty("timing");
      expect(report.policies[0]).not.toHaveProperty("delayMs");
      expect(report.policies[0]).not.toHaveProperty("windowImbalance");
    });

    test("finds the rate from a utilisation, of standard input too", async () => {
      const argv = ["replay", "-", "--utilisation", "0.9", ...one];
      const { code, stdout, stderr } = await kvroute(argv, { stdin: stdin() });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain(
        "Each worker prefills 1,707 tokens a second, so that taking turns would keep it 90 % busy.\n",
      );
      expect(stdout).toContain("An answer takes 25 ms a token.\n");
      expect(stdout).toMatch(
        /│ round-robin +│ +40\.00 % │ +1\.00 │ +1\.00 │ +0\.45 s │ +0\.30 s │ +0\.60 s │ +0\.60 s │\n/,
      );
      for (const column of ["hit rate", "imbalance", "in 60 s", "mean", "p50", "p90", "p99"]) {
        expect(stdout).toMatch(new RegExp(`^${column} +\\w`, "m"));
      }
    });

    test("lets a session wait for its answers with --closed-loop", async () => {
      const rows = timed.map(({ input_length: input_chars, output_length: output_chars, ...rest }) => {
        return JSON.stringify({ ...rest, input_chars, output_chars, session_id: "a" });
      });
      const mean = async (...options: string[]): Promise<number> => {
        const argv = ["replay", "-", "--json", "--prefill-rate", "512", ...one, ...options];
        const { stdout } = await kvroute(argv, { stdin: Readable.from([Buffer.from(rows.join("\n"))]) });
        return JSON.parse(stdout).policies[0].delayMs.mean;
      };
      expect(await mean()).toBe((2000 + 3000) / 2);
      expect(await mean("--closed-loop")).toBe((2000 + 2000) / 2);
      const { stdout } = await kvroute(["replay", "-", "--prefill-rate", "512", "--closed-loop", ...one], {
        stdin: Readable.from([Buffer.from(rows.join("\n"))]),
      });
      expect(stdout).toContain("Each worker prefills 512 characters a second.\n");
      expect(stdout).toContain("An answer takes 25 ms a token, and the next request of a session waits for it.\n");
    });

    test.each([
      [["--hold"], "--hold needs --utilisation or --prefill-rate: without them workers are always free."],
      [["--closed-loop"], "--closed-loop needs --utilisation or --prefill-rate: without them answers take no time."],
      [
        ["--utilisation", "1", "--prefill-rate", "9"],
        "option '--utilisation <part>' cannot be used with option '--prefill-rate <tokens>'",
      ],
      [
        ["--utilisation", "0"],
        "option '--utilisation <part>' argument '0' is invalid. Expected a number above 0 and at most 100, got \"0\".",
      ],
      [
        ["--prefill-rate", "-1"],
        "option '--prefill-rate <tokens>' argument '-1' is invalid. " +
          'Expected a number above 0 and at most 1000000000000, got "-1".',
      ],
      [
        ["--decode-ms-per-token", "x"],
        "option '--decode-ms-per-token <ms>' argument 'x' is invalid. Expected a number from 0 to 1000000, got \"x\".",
      ],
      [
        ["--prefill-rate", "9", "--closed-loop"],
        "Expected a session_id in every row of a closed loop (--closed-loop), got a row without one.",
      ],
    ])("ends with 2 and one line: %j", async (options, problem) => {
      const { code, stderr } = await kvroute(["replay", "-", ...options], { stdin: stdin() });
      expect({ code, stderr }).toEqual({ code: 2, stderr: `kvroute: ${problem}\n` });
    });
  });

  test("reads plain and gzipped files whatever their names, and standard input", async () => {
    const hitRates: unknown[] = [];
    for (const name of ["good.jsonl", "good.jsonl.gz", "gzipped-without-saying-so", "-"]) {
      const path = name === "-" ? name : file(name);
      const stdin = Readable.from([Buffer.from(GOOD.slice(0, 9)), Buffer.from(GOOD.slice(9))]);
      const { stdout } = await kvroute(["replay", path, "--json", "--blocks", "infinite"], { stdin });
      const { trace, requests, blocksPerWorker, policies } = JSON.parse(stdout);
      expect({ trace, requests, blocksPerWorker }).toEqual({ trace: path, requests: 4, blocksPerWorker: "infinite" });
      hitRates.push(policies.map((policy: { hitRate: number }) => policy.hitRate));
    }
    expect(new Set(hitRates.map((rates) => JSON.stringify(rates))).size).toBe(1);
  });

  test("reads a gzip file of several members", async () => {
    const { stdout } = await kvroute(["replay", file("two-members.gz"), "--json"]);
    expect(JSON.parse(stdout).requests).toBe(8);
  });

  test("gives the same figures for the same seed", async () => {
    const rows = Array.from({ length: 100 }, (_, id) => row(id)).join("");
    const figures = async (seed: string): Promise<unknown> => {
      const argv = ["replay", "-", "--json", "--policy", "random", "--seed", seed];
      const { stdout } = await kvroute(argv, { stdin: Readable.from([Buffer.from(rows)]) });
      return JSON.parse(stdout).policies[0].missedBlocks;
    };
    expect(await figures("1")).toEqual(await figures("1"));
    expect(await figures("1")).not.toEqual(await figures("2"));
  });

  test("passes the options of the policies on", async () => {
    const hitRate = async (...options: string[]): Promise<number> => {
      const stdin = Readable.from([Buffer.from(row(1, 2) + row(1, 3) + row(1, 2))]);
      const { stdout } = await kvroute(["replay", "-", "--json", "--workers", "64", ...options], { stdin });
      return JSON.parse(stdout).policies[0].hitRate;
    };
    expect(await hitRate("--policy", "prefix-hash", "--prefix-blocks", "1")).toBeCloseTo(3 / 6);
    expect(await hitRate("--policy", "prefix-hash")).toBeCloseTo(2 / 6);
    expect(await hitRate("--policy", "cache-aware", "--match-threshold", "0.4")).toBeCloseTo(3 / 6);
    expect(await hitRate("--policy", "cache-aware", "--match-threshold", "0.5")).toBeCloseTo(2 / 6);
  });

  test.each([
    ["bad.jsonl", ':2: field "input_length" must be a whole number of at least 0, got -5'],
    ["cut.jsonl.gz", ":1: the gzip data is cut short or damaged"],
    ["empty.jsonl", ": the trace is empty"],
    ["missing.jsonl", ": no such file or directory"],
    ["", ": is a directory"],
  ])("ends with 1 and one line about %j", async (name, problem) => {
    const { code, stdout, stderr } = await kvroute(["replay", file(name)]);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: `kvroute: ${file(name)}${problem}\n` });
  });

  test("names standard input when that is what it read", async () => {
    const { code, stderr } = await kvroute(["replay", "-"], { stdin: Readable.from([Buffer.from("x\n")]) });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "kvroute: standard input:1: expected a JSON object, got x\n",
    });
  });

  test("reports a file that fails while it is read", async () => {
    const stdin = new Readable({
      read() {
        this.destroy(Object.assign(new Error("EIO: i/o error"), { code: "EIO" }));
      },
    });
    const { code, stderr } = await kvroute(["replay", "-"], { stdin });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "kvroute: standard input: EIO: i/o error\n" });
  });

  test("leaves bad rows out with --skip-bad, and says how many", async () => {
    const { code, stdout } = await kvroute(["replay", file("bad.jsonl"), "--skip-bad"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`2 bad rows skipped, the first: ${file("bad.jsonl")}:2: field "input_length" must be`);
    const json = await kvroute(["replay", file("bad.jsonl"), "--skip-bad", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ requests: 2, skipped: 2 });
  });
});

describe("a wrong command", () => {
  const range = "Expected a whole number from 1 to 1024, got";
  test.each([
    [["replay"], "missing required argument 'trace'"],
    [["replay", "a", "b"], "too many arguments for 'replay'. Expected 1 argument but got 2."],
    [["replay", "a", "--wrkers", "1"], "unknown option '--wrkers' (Did you mean --workers?)"],
    [["relpay"], "unknown command 'relpay' (Did you mean replay?)"],
    [["replay", "a", "--workers", "0"], `option '--workers <count>' argument '0' is invalid. ${range} "0".`],
    [["replay", "a", "--workers", "1e1"], `option '--workers <count>' argument '1e1' is invalid. ${range} "1e1".`],
    [["replay", "a", "--workers", "1025"], `option '--workers <count>' argument '1025' is invalid. ${range} "1025".`],
    [
      ["replay", "a", "--blocks", "-1"],
      "option '--blocks <count>' argument '-1' is invalid. " +
        'Expected a whole number from 1 to 16777215 or "infinite", got "-1".',
    ],
    [
      ["replay", "a", "--policy", "random,fastest"],
      "option '--policy <names>' argument 'random,fastest' is invalid. " +
        `Expected policies among ${POLICY_NAMES.join(", ")}, got "fastest".`,
    ],
    [
      ["replay", "a", "--match-threshold", "1.1"],
      "option '--match-threshold <part>' argument '1.1' is invalid. Expected a number from 0 to 1, got \"1.1\".",
    ],
    [
      ["generate", "--stress", "cold"],
      "option '--stress <name>' argument 'cold' is invalid. " +
        'Expected one of hot, burst, document, one-at-a-time, got "cold".',
    ],
    [
      ["generate", "--stress", "hot", "--requests", "5"],
      "option '--stress <name>' cannot be used with option '--requests <count>'",
    ],
    [
      ["generate", "--rate", "0"],
      "option '--rate <number>' argument '0' is invalid. Expected a number above 0 and at most 1000000, got \"0\".",
    ],
  ])("ends with 2 and one line: %j", async (argv, problem) => {
    const { code, stdout, stderr } = await kvroute(argv);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: `kvroute: ${problem}\n` });
  });

  test("without any word is answered with the help", async () => {
    const { code, stdout, stderr } = await kvroute([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^Usage: kvroute/);
  });
});

describe("kvroute", () => {
  test("has the version of its package", async () => {
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    expect(VERSION).toBe(version);
    expect(await kvroute(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test.each([
    [["--help"], "Usage: kvroute [options] [command]"],
    [["replay", "--help"], "Usage: kvroute replay [options] <trace>"],
    [["generate", "--help"], "Usage: kvroute generate [options]"],
    [["help", "demo"], "Usage: kvroute demo [options]"],
  ])("helps: %j", async (argv, start) => {
    const { code, stdout, stderr } = await kvroute(argv);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.startsWith(start)).toBe(true);
  });

  test.each([[["replay", "-", "--json"]], [["generate"]], [["--help"]]])(
    "ends quietly when its reader has gone: %j",
    async (argv) => {
      const stdin = Readable.from([Buffer.from(GOOD)]);
      const { code, stderr } = await kvroute(argv, { stdout: closedPipe(), stdin });
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    },
  );

  test("shows where a fault of its own is only when asked to", async () => {
    const fault = new TypeError("broken clock");
    const now = (): number => {
      throw fault;
    };
    const argv = ["replay", file("good.jsonl")];
    expect(await kvroute(argv, { now })).toEqual({
      code: 70,
      stdout: "",
      stderr: "kvroute: unexpected error: broken clock (KVROUTE_DEBUG=1 shows where)\n",
    });
    const { code, stderr } = await kvroute(argv, { now, env: { KVROUTE_DEBUG: "1" } });
    expect({ code, stderr }).toEqual({ code: 70, stderr: `${fault.stack}\n` });
  });

  test("takes an error with a code for one of its input, not for a fault of its own", async () => {
    const now = (): number => {
      throw new KvrouteError("KVROUTE_EXAMPLE", "no room");
    };
    const outcome = await kvroute(["replay", file("good.jsonl")], { now });
    expect(outcome).toEqual({ code: 1, stdout: "", stderr: "kvroute: no room\n" });
  });
});

describe("kvroute generate", () => {
  test("writes a trace that replay reads, gzipped if the name says so", async () => {
    const argv = ["generate", "--requests", "1234", "--seed", "5"];
    const { code, stdout: text } = await kvroute(argv);
    expect(code).toBe(0);
    expect(text.split("\n")).toHaveLength(1235);
    for (const name of ["made-up.jsonl", "made-up.jsonl.gz"]) {
      const { stdout } = await kvroute([...argv, "--output", file(name)]);
      expect(stdout).toBe(`Wrote 1,234 requests. Next: npx kvroute replay ${file(name)}\n`);
      const bytes = await readFile(file(name));
      expect((name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString()).toBe(text);
      const replayed = await kvroute(["replay", file(name), "--json"]);
      expect(JSON.parse(replayed.stdout).requests).toBe(1234);
    }
  });

  test("follows its options", async () => {
    const trace = async (...options: string[]): Promise<string> =>
      (await kvroute(["generate", "--requests", "50", ...options])).stdout;
    const plain = await trace();
    expect(await trace("--seed", "0", "--rate", "4", "--system-prompts", "32")).toBe(plain);
    for (const options of [
      ["--seed", "1"],
      ["--rate", "5"],
      ["--system-prompts", "2"],
    ]) {
      expect(await trace(...options)).not.toBe(plain);
    }
  });

  test("writes stress traces, and says at which rate they are replayed", async () => {
    const { code, stdout } = await kvroute(["generate", "--stress", "burst", "--output", file("burst.jsonl")]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `Wrote 400 requests. Next: npx kvroute replay ${file("burst.jsonl")} --prefill-rate 4895\n`,
    });
    expect((await kvroute(["generate", "--stress", "burst"])).stdout).toBe(await readFile(file("burst.jsonl"), "utf8"));
    const hot = async (seed: string): Promise<string> =>
      (await kvroute(["generate", "--stress", "hot", "--seed", seed])).stdout;
    expect(await hot("0")).not.toBe(await hot("1"));
  });

  test("says which file it cannot write", async () => {
    for (const name of ["no-such-folder/x.jsonl", "no-such-folder/x.jsonl.gz"]) {
      const { code, stdout, stderr } = await kvroute(["generate", "--requests", "9", "--output", file(name)]);
      const problem = `kvroute: ${file(name)}: no such file or directory\n`;
      expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: problem });
      expect(existsSync(file(name))).toBe(false);
    }
  });
});

describe("kvroute demo", () => {
  test("replays a made-up trace through every policy, and ends with what to try next", async () => {
    const { code, stdout, stderr } = await kvroute(["demo"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Replayed 50,000 requests \(.*\) from a made-up trace of conversations\n/);
    expect(stdout).toMatch(/│ policy +│ hit rate │ imbalance │ in 60 s │ +mean │ +p50 │ +p90 │ +p99 │/);
    expect(stdout).toContain("│ kv ");
    expect(stdout.split("What to try next:\n")[1]).toContain("npx kvroute replay your-trace.jsonl.gz --workers 8");
  });
});

describe("progress", () => {
  test("is drawn on a terminal, and never in a pipe or without a known length", async () => {
    expect((await kvroute(["replay", file("good.jsonl")], { isTTY: true })).stderr).toContain("Replaying [");
    expect((await kvroute(["replay", file("good.jsonl")], { isTTY: false })).stderr).toBe("");
    const stdin = Readable.from([Buffer.from(GOOD)]);
    expect((await kvroute(["replay", "-"], { isTTY: true, stdin })).stderr).toBe("");
  });

  test("leaves the terminal in order when the trace is bad", async () => {
    const { stderr } = await kvroute(["replay", file("bad.jsonl")], { isTTY: true });
    const afterBar = stderr.slice(stderr.lastIndexOf("Replaying ["));
    expect(afterBar).toContain("\u001b[?7h"); // lines wrap again
    expect(afterBar).toMatch(/kvroute: .*:2: .*\n$/);
  });

  test("costs nothing where it is not drawn", () => {
    const pipe = new Sink();
    expect(startProgress(pipe, 10)).toBe(startProgress(pipe, undefined));
  });
});

test("numbers have a comma between thousands", () => {
  expect([0, 999, 1_000, 1_234_567].map(formatCount)).toEqual(["0", "999", "1,000", "1,234,567"]);
});
