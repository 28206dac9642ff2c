import { type ChildProcess, spawn } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EdgeVM } from "@edge-runtime/vm";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { bundle } from "./bundle.js";
import { handOver, platformModule } from "./edge.js";
import { collect } from "./process.js";
import { PROGRAMS } from "./programs.js";
import { serve } from "./workerd.js";

const project = inject("project");
const binaries = inject("binaries");
const modules = "folder" in binaries ? join(binaries.folder, "node_modules") : null;

const TOKEN = "secret";
const LISTEN_MS = 30_000;

type Send = (method: string, path: string, body?: object) => Promise<{ status: number; body: Record<string, unknown> }>;

const sender =
  (base: string): Send =>
  async (method, path, body) => {
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const response = await fetch(base + path, init);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

/** Registers workers, books two requests at once, follows them and ends them. Both must see the same service. */
async function walk(send: Send): Promise<void> {
  for (const id of ["a", "b"]) {
    const added = await send("POST", "/workers", { worker_id: id, endpoint: `http://${id}:8000`, block_size: 4 });
    expect(added).toMatchObject({ status: 201, body: { worker_id: id } });
  }
  const tokens = (first: number) => Array.from({ length: 16 }, (_, at) => first + at);
  const ids = ["x", "y"];
  const booked = await Promise.all(
    ids.map((id, at) => send("POST", "/select_and_reserve", { selection_id: id, token_ids: tokens(100 * at) })),
  );
  expect(booked.map(({ status }) => status)).toEqual([200, 200]);
  expect(new Set(booked.map(({ body }) => body["worker_id"]))).toEqual(new Set(["a", "b"]));
  for (const id of ids) {
    for (const step of ["prefill_complete", "output_block"]) {
      expect((await send("POST", `/reservations/${id}/${step}`)).status).toBe(200);
    }
    expect((await send("DELETE", `/reservations/${id}`)).status).toBe(200);
  }
  const again = await send("POST", "/select", { token_ids: tokens(0) });
  expect(again.body).toMatchObject({ worker_id: booked[0]?.body["worker_id"] }); // where its prefix is
}

/** Starts a server of an example, and waits for the line that says where it listens. */
function listening(
  command: string,
  args: readonly string[],
  folder: string,
): Promise<{ url: string; child: ChildProcess }> {
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], PORT: "0", KVROUTE_CONTROL_TOKEN: TOKEN };
  const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const output = collect(child);
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${command} ${why}:\n${output.stdout}${output.stderr}`));
    const timer = setTimeout(() => fail("did not listen"), LISTEN_MS);
    child.once("error", (error) => fail(error.message));
    child.once("exit", (code) => fail(`ended with ${code}`));
    child.stdout.on("data", () => {
      const port = /listening on http:\/\/localhost:(\d+)/.exec(output.stdout)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      resolve({ url: `http://127.0.0.1:${port}`, child });
    });
  });
}

describe("the examples of servers", () => {
  const examples = join(project, "examples");

  beforeAll(() => {
    cpSync(fileURLToPath(new URL("../../examples", import.meta.url)), examples, { recursive: true });
  });

  async function serves(name: string, command: string, args: readonly string[], prefix = ""): Promise<void> {
    const { url, child } = await listening(command, args, join(examples, name));
    try {
      await walk(sender(url + prefix));
    } finally {
      child.kill("SIGKILL");
    }
  }

  test("hono-node mounts the API beside routes of its own", () =>
    serves("hono-node", process.execPath, ["main.js"], "/kvroute"));

  test.skipIf(modules === null)("deno serves the API, and needs no more than its header says", async () => {
    const allowed = ["--allow-net", "--allow-env=KVROUTE_CONTROL_TOKEN,PORT"];
    const args = ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual", ...allowed, "main.js"];
    await serves("deno", join(modules ?? "", PROGRAMS.Deno), args);
  });

  test.skipIf(modules === null)("bun serves the API", () =>
    serves("bun", join(modules ?? "", PROGRAMS.Bun), ["main.js"]),
  );

  test.skipIf(modules === null)(
    "cloudflare-worker keeps one service in a Durable Object for all isolates",
    async () => {
      const workerd = await serve("example", {
        project,
        binary: join(modules ?? "", PROGRAMS["Cloudflare workerd"]),
        code: await bundle(join(examples, "cloudflare-worker/worker.js"), "workerd"),
        objects: { SELECTION: "Selection" },
        texts: { KVROUTE_CONTROL_TOKEN: TOKEN },
      });
      try {
        await walk(sender(workerd.url));
      } finally {
        await workerd.stop();
      }
    },
  );
});

describe("vercel-edge", () => {
  let code: string;

  beforeAll(async () => {
    const module = await bundle(join(project, "examples/vercel-edge/select.js"), "edge-light", [platformModule]);
    // The platform imports the module; the machine here runs scripts.
    code = module.replace(
      /export \{ config, (\w+) as default \};/,
      'addEventListener("fetch", (event) => event.respondWith($1(event.request)));',
    );
  });

  test("answers on the edge runtime, with a service made at global scope", async () => {
    const vm = new EdgeVM({ extend: handOver(project), codeGeneration: { strings: false, wasm: false } });
    vm.evaluate(code);
    const body = JSON.stringify({ token_ids: Array.from({ length: 32 }, (_, at) => at) });
    const answer = await vm.dispatchFetch("http://edge/select", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ worker_id: expect.stringMatching(/^http:\/\/10\.0\.0\.[12]:8000$/) });
    const workers = await vm.dispatchFetch("http://edge/workers", { method: "POST", body: "{}" });
    expect(workers.status).toBe(404); // without a control token nothing changes workers
  });
});
