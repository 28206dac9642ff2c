import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/until.js";
import { type CliProcess, type ServeProcess, startCli, startServe } from "./serve-process.js";

const CHAT = "/v1/chat/completions";
const started: CliProcess[] = [];

afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill("SIGKILL");
    await child.exit;
  }
});

async function serve(argv: readonly string[] = [], env: Record<string, string> = {}): Promise<ServeProcess> {
  const server = await startServe(argv, env);
  started.push(server);
  return server;
}

/** Runs a command that ends by itself. */
async function end(argv: readonly string[], env: Record<string, string> = {}) {
  const child = startCli(argv, env);
  started.push(child);
  const code = await child.exit;
  return { code, stdout: child.stdout, stderr: child.stderr };
}

const ask = (url: string, fields: object = {}, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${url}${CHAT}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "fake-model", messages: [{ role: "user", content: "Hello." }], ...fields }),
    ...(signal === undefined ? {} : { signal }),
  });

/** Begins a stream of so many tokens, and reads its first chunk. */
async function begin(url: string, tokens: number) {
  const response = await ask(url, { stream: true, max_tokens: tokens, ignore_eos: true });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = new TextDecoder().decode((await reader.read()).value);
  return {
    response,
    async rest(): Promise<string> {
      const decoder = new TextDecoder();
      for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
        text += decoder.decode(next.value, { stream: true });
      }
      return text;
    },
  };
}

const requestLines = ({ lines }: CliProcess) => lines.filter(({ msg }) => msg === "request");

describe("kvroute serve", () => {
  test("says where it listens, that its engines are fake, and a curl line that works as printed", async () => {
    const server = await serve();
    expect(server.stderr).toMatch(/^kvroute \d\S* listens at http:\/\/127\.0\.0\.1:\d+, policy kv\.$/m);
    expect(server.stderr).toContain("FAKE engines");
    const line = server.stderr.split("\n").find((one) => one.startsWith("  curl ")) as string;
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", line.trim()]);
    expect(stdout).toMatch(/^HTTP\/1\.1 200 /);
    expect(stdout).toMatch(/^x-kvroute-worker: embedded-[12]\r$/im);
    expect(stdout).toMatch(/^x-kvroute-decision: \w+\r$/im);
    expect(JSON.parse(stdout.slice(stdout.indexOf("\r\n\r\n")))).toMatchObject({ object: "chat.completion" });
  });

  test("logs one line of JSON a request, and nothing else on standard output", async () => {
    const server = await serve();
    const { headers } = await ask(server.url);
    await ask(server.url, { model: "another" });
    await until(() => requestLines(server).length === 2, "both requests are logged");
    const [first, second] = requestLines(server);
    expect(server.lines[0]).toMatchObject({ level: "info", msg: "listening", url: server.url, policy: "kv" });
    expect(first).toMatchObject({
      ...{ level: "info", method: "POST", path: CHAT, model: "fake-model", status: 200, outcome: "completed" },
      ...{
        worker: headers.get("x-kvroute-worker"),
        attempts: 1,
        decision: "initialize",
        promptTokens: expect.any(Number),
      },
    });
    for (const name of ["queuedMs", "routingMs", "durationMs"])
      expect(String(first?.[name])).toMatch(/^\d+(\.\d{1,3})?$/);
    expect(second).toMatchObject({ model: "another", status: 404, outcome: "rejected" });
    expect(server.stdout.split("\n").filter((line) => line !== "")).toHaveLength(server.lines.length);
  });

  test("logs what its level lets through", async () => {
    const server = await serve(["--log-level", "warn"]);
    await ask(server.url);
    server.kill("SIGTERM");
    expect(await server.exit).toBe(0);
    expect(server.stdout).toBe("");
  });

  test("ends with 0 when it is stopped and nothing is under way, and leaves nothing behind", async () => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const server = await serve(["--embedded", "3"]);
      await ask(server.url);
      const engines = [...server.stderr.matchAll(/^ +embedded-\d +(\S+)$/gm)].map(([, url]) => url as string);
      expect(engines).toHaveLength(3);
      server.kill(signal);
      expect(await server.exit).toBe(0);
      expect(server.lines.at(-1)).toMatchObject({ msg: "stopped", cut: 0 });
      for (const url of [server.url, ...engines]) await expect(fetch(url)).rejects.toThrow("fetch failed");
    }
  });

  test("lets streams end that are under way, and takes nothing new", async () => {
    const server = await serve();
    const stream = await begin(server.url, 200);
    server.kill("SIGTERM");
    await until(() => server.stderr.includes("Stopping: 1 request under way"), "it is stopping");
    const late = await ask(server.url);
    expect(late.status).toBe(503);
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await late.json()).error).toMatchObject({ code: "KVROUTE_GATEWAY_CLOSED", type: "server_error" });
    expect((await fetch(`${server.url}/ready`)).status).toBe(503);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    const text = await stream.rest();
    expect(text.match(/"delta":\{"content"/g)?.length).toBeGreaterThan(150);
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true);
    expect(text).not.toContain("error");
    expect(await server.exit).toBe(0);
  });

  test("passes an engine's own 503 as it is", async () => {
    const server = await serve(["--retry-attempts", "1"]);
    const fault = JSON.stringify({ kind: "status", status: 503, message: "too hot" });
    const response = await ask(server.url, {}, { "x-kvroute-fault": fault });
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, null]);
    expect(await response.text()).toContain("too hot");
  });

  test("breaks streams off when they take longer than it may wait", async () => {
    const server = await serve(["--drain-timeout-ms", "50"]);
    const stream = await begin(server.url, 100_000);
    server.kill("SIGTERM");
    expect(await server.exit).toBe(1);
    expect(await stream.rest().catch((error: Error) => error)).toBeDefined();
    expect(server.lines.at(-1)).toMatchObject({ msg: "stopped", cut: 1 });
    expect(server.stderr).toContain("but 50 ms had passed (drainTimeoutMs), and 1 were broken off.");
  });

  test("stops at once when a second signal comes", async () => {
    const server = await serve();
    const stream = await begin(server.url, 100_000);
    server.kill("SIGTERM");
    await until(() => server.stderr.includes("Stopping"), "it is stopping");
    server.kill("SIGINT");
    expect(await server.exit).toBe(1);
    await stream.rest().catch(() => undefined);
    expect(server.stderr).toContain("but a second signal came, and 1 were broken off.");
  });

  test("asks for a key below /v1 where it has some, shows none, and gives none to workers", async () => {
    const server = await serve(["--api-key", "sk-one"], {});
    expect(server.stderr).toContain("authorization: Bearer $API_KEY");
    expect((await ask(server.url)).status).toBe(401);
    expect((await ask(server.url, {}, { authorization: "Bearer sk-two" })).status).toBe(401);
    expect((await ask(server.url, {}, { authorization: "Bearer sk-one" })).status).toBe(200);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    await until(() => requestLines(server).length === 3, "the requests are logged");
    const refused = {
      method: "POST",
      path: CHAT,
      status: 401,
      outcome: "refused",
      error: "KVROUTE_GATEWAY_UNAUTHORIZED",
    };
    expect(requestLines(server)).toMatchObject([refused, refused, { status: 200, outcome: "completed" }]);
    expect(server.stderr + server.stdout).not.toMatch(/sk-(one|two)/);
  });

  test("opens control to those who have the token, and is without it otherwise", async () => {
    const change = (server: ServeProcess, headers: Record<string, string>) =>
      fetch(`${server.url}/workers/embedded-1`, { method: "DELETE", headers });
    const closed = await serve();
    expect((await change(closed, { authorization: "Bearer t0ken" })).status).toBe(404);
    const open = await serve([], { KVROUTE_CONTROL_TOKEN: "t0ken" });
    expect((await change(open, {})).status).toBe(401);
    expect((await change(open, { authorization: "Bearer t0ken" })).status).toBe(200);
    await until(() => open.lines.filter(({ msg }) => msg === "control").length === 2, "both are logged");
    const tried = { method: "DELETE", path: "/workers/embedded-1" };
    const control = open.lines.filter(({ msg }) => msg === "control");
    expect(control).toMatchObject([
      { ...tried, status: 401 },
      { ...tried, status: 200 },
    ]);
    expect(open.stderr + open.stdout).not.toContain("t0ken");
    const none = await serve(["--no-control"], { KVROUTE_CONTROL_TOKEN: "t0ken" });
    expect((await change(none, { authorization: "Bearer t0ken" })).status).toBe(404);
  });
});

describe("a wrong start is one sentence", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "kvroute-serve-"));
    await writeFile(join(folder, "bad.yaml"), "workers: [http://a:1]\nprot: 1\n");
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("and exit code 1, where the port is in use", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const { code, stdout, stderr } = await end(["serve", "--port", String(port)]);
    server.close();
    const problem = "the port is in use; --port takes another one, and 0 any that is free";
    expect(stderr).toBe(`kvroute: Expected to listen at 127.0.0.1 port ${port}, but ${problem}.\n`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.each([
    [["--host", "0.0.0.0"], {}, "Expected --control-token, or --no-control"],
    [["--config", "BAD"], {}, 'got "prot"; the nearest is "port".'],
    [["--config", "nowhere.yaml"], {}, "nowhere.yaml: no such file or directory"],
    [[], { KVROUTE_PROT: "1" }, "got KVROUTE_PROT; the nearest is KVROUTE_PORT."],
    [["--prot", "1"], {}, "unknown option '--prot'"],
    [["--api-kye=S3CRET"], {}, "unknown option '--api-kye'"],
    [["--port", "x"], {}, 'Expected --port to be a whole number from 0 to 65535, got "x".'],
    [["--worker", "ftp://a"], {}, "Expected --worker[0].url to be an http or https URL"],
    [["stray"], {}, "too many arguments"],
  ] as const)("and exit code 2 or 1: %j %j", async (argv, env, message) => {
    const given = argv.map((text) => (text === "BAD" ? join(folder, "bad.yaml") : text));
    const { code, stdout, stderr } = await end(["serve", ...given], env);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("S3CRET");
    expect(stderr.split("\n")).toHaveLength(2);
    expect({ code, stdout }).toEqual({ code: given.includes("nowhere.yaml") ? 1 : 2, stdout: "" });
  });
});
