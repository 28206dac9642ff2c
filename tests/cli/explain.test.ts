import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RouteExplanation } from "../../src/gateway/explain.js";
import { kvroute } from "./stage.js";

const user = (content: string) => ({ role: "user", content });
const LONG = "Tell me of the hanging gardens, and of all that grows there. ".repeat(40);
const OTHER = "Of the lighthouse I would hear, and of the ships that pass it. ".repeat(40);

let folder: string;
const file = (name: string) => join(folder, name);
const body = (content: string, fields: object = {}) =>
  JSON.stringify({ model: "m", messages: [user(content)], ...fields });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kvroute-explain-"));
  await writeFile(file("long.json"), body(LONG));
  await writeFile(file("longer.json"), body(`${LONG} And then?`));
  await writeFile(file("other.json"), body(OTHER));
  await writeFile(file("streamed.json"), body(LONG, { stream: true }));
  await writeFile(file("message.json"), body(LONG, { max_tokens: 5 }));
  await writeFile(file("prompt.json"), JSON.stringify({ model: "m", prompt: LONG }));
  await writeFile(file("unserved.json"), JSON.stringify({ model: "m", messages: "none" }));
  await writeFile(file("no.json"), "{");
  await writeFile(
    file("fleet.yaml"),
    "policy: round-robin\nworkers: [a=http://a, { id: b, url: http://a/b, models: [m] }]\n",
  );
  await writeFile(
    file("models.yaml"),
    "workers: [{ id: a, url: http://a, models: [n] }, { id: b, url: http://b, models: [m] }]\n",
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function explained(...argv: string[]): Promise<RouteExplanation> {
  const { code, stdout, stderr } = await kvroute(["explain", ...argv, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.trim().split("\n")).toHaveLength(1);
  return JSON.parse(stdout);
}

describe("kvroute explain", () => {
  test("finds cold workers cold", async () => {
    const { worker, model, blocks, promptBytes, candidates, excluded, policy } = await explained(file("long.json"));
    expect(candidates.map((one) => one.worker)).toEqual(["embedded-1", "embedded-2"]);
    expect(candidates.map(({ cachedBlocks, inFlight }) => [cachedBlocks, inFlight])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(candidates.filter(({ isChosen }) => isChosen).map((one) => one.worker)).toEqual([worker]);
    expect({ model, excluded, policy }).toEqual({ model: "m", excluded: [], policy: "kv" });
    expect(promptBytes).toBeGreaterThan(LONG.length);
    expect(blocks).toBe(Math.floor(promptBytes / 256));
    expect(candidates[0]?.terms).not.toEqual({});
  });

  test.each([
    ["long.json", "/v1/chat/completions"],
    ["streamed.json", "/v1/chat/completions"],
    ["message.json", "/v1/messages"],
    ["prompt.json", "/v1/completions"],
  ])("finds what %s, sent to %s before, has left in a cache, and goes there", async (name, path) => {
    const argv = [file(name), "--path", path, "--worker", "a=http://a", "--worker", "b=http://b"];
    const { worker, blocks, candidates } = await explained(...argv, "--after", file(name));
    const chosen = candidates.find(({ isChosen }) => isChosen);
    expect(chosen).toMatchObject({ worker, cachedBlocks: blocks });
    expect(chosen?.cachedTokens).toBeGreaterThan(0);
    expect(candidates.map(({ cachedBlocks }) => cachedBlocks).sort()).toEqual([0, blocks].sort());
  });

  test("serves earlier requests in their order", async () => {
    const afters = ["other.json", "long.json"].flatMap((name) => ["--after", file(name)]);
    const { candidates } = await explained(file("longer.json"), "--policy", "round-robin", ...afters);
    expect(candidates.map(({ cachedBlocks }) => cachedBlocks > 0)).toEqual([false, true]);
  });

  test("takes the options of the server, and names who is left out", async () => {
    const { policy, candidates } = await explained(file("long.json"), "--config", file("fleet.yaml"));
    expect({ policy, workers: candidates.map(({ worker }) => worker) }).toEqual({
      policy: "round-robin",
      workers: ["a", "b"],
    });
    const { excluded, worker } = await explained(file("long.json"), "--config", file("models.yaml"));
    expect(excluded).toEqual([{ worker: "a", reason: expect.stringMatching(/model/) }]);
    expect(worker).toBe("b");
    const { blocks } = await explained(file("long.json"), "--block-bytes", "1024");
    expect(blocks).toBeLessThan(4);
  });

  test("says by what a session is known", async () => {
    const named = await explained(file("long.json"), "--header", "X-Session-Id=abc=d");
    expect(named.session).toEqual({ id: "abc=d", source: "x-session-id" });
    expect((await explained(file("long.json"))).session?.source).toBe("fingerprint");
  });

  test("prints a table for people, without colour", async () => {
    const argv = ["explain", file("longer.json"), "--config", file("models.yaml"), "--after", file("long.json")];
    const { code, stdout } = await kvroute(argv);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^\/v1\/chat\/completions, model m: [\d,]+ bytes of prompt, about [\d,]+ tokens, \d+ full blocks\.$/m,
    );
    expect(stdout).toMatch(/^Session [0-9a-f]+…?, by its fingerprint; \w+\.$/m);
    expect(stdout).toMatch(/^Policy kv sends it to b\.$/m);
    expect(stdout).toMatch(/^│ {3}│ worker │ cached blocks │ cached tokens │ in flight │ /m);
    expect(stdout).toMatch(/^│ \* │ b +│ +\d+ of \d+ │ +\d+ │ +0 │ /m);
    expect(stdout).toMatch(/^The same for all: \w+ [\d.]+(, \w+ [\d.]+)*\.$/m);
    expect(stdout).toMatch(/^Left out: a \(.*model.*\)\.$/m);
    expect(stdout).not.toContain("\u001b");
  });

  test("lets no request speak to the terminal", async () => {
    const stdin = JSON.stringify({ model: "\u001b[31m", messages: [user("x")], user: `\u0007${"u".repeat(100)}` });
    const { stdout } = await kvroute(["explain", "-"], { stdin });
    expect(stdout).toContain(`model ?[31m`);
    expect(stdout).toContain(`Session ?${"u".repeat(39)}…, by its user; `);
  });

  test("reads standard input", async () => {
    const { code, stdout } = await kvroute(["explain", "-", "--json"], { stdin: body(OTHER) });
    expect({ code, model: JSON.parse(stdout).model }).toEqual({ code: 0, model: "m" });
  });

  test.each([
    [["no.json"], 1, "JSON"],
    [["nowhere.json"], 1, "no such file or directory"],
    [["long.json", "--after", "nowhere.json"], 1, "no such file or directory"],
    [["long.json", "--after", "unserved.json"], 2, "unserved.json to be one that an engine serves, got 400"],
    [["long.json", "--max-body-bytes", "100"], 1, "has more than 100 bytes (--max-body-bytes)"],
    [["long.json", "--path", "/metrics"], 2, 'Expected --path to be below /v1/, got "/metrics".'],
    [["long.json", "--header", "authorization S3CRET"], 2, "Expected --header[0] to be the name and value"],
    [["long.json", "--policy", "best"], 2, "Expected --policy to be one of kv"],
    [["long.json", "--embedded", "0"], 1, "Expected a worker"],
    [["long.json", "--server", "http://127.0.0.1:1", "--after", "long.json"], 2, "cannot be used with option"],
    [[], 2, "missing required argument"],
  ])("refuses %j with exit code %i", async (argv, code, message) => {
    const outcome = await kvroute(["explain", ...argv.map((text) => (text.endsWith(".json") ? file(text) : text))]);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stderr).not.toContain("S3CRET");
    expect(outcome.stderr.trim().split("\n")).toHaveLength(1);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: "" });
  });
});
