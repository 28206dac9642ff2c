import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { createAdaptorServer } from "@hono/node-server";
import { expect, test } from "vitest";
import { listen } from "../../src/node/listen.js";
import { TOKEN } from "./api-stage.js";
import { GatewayStage } from "./gateway-stage.js";

const page = readFileSync(new URL("../../docs/gateway-api.md", import.meta.url), "utf8");
const run = promisify(execFile);
const hasCurl = await run("curl", ["--version"]).then(
  () => true,
  () => false,
);

test("the page lists every endpoint, none that is not there, and which take the token", async () => {
  const { paths } = (await new GatewayStage().send("GET", "/openapi.json")).body;
  const served = Object.entries<Record<string, { security?: unknown }>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { security }]) => `${method.toUpperCase()} ${path} ${security === undefined ? "all" : "token"}`,
    ),
  );
  const rows = page.matchAll(/^\| `([A-Z]+ \/[^`]+)` \| (\w+) \|/gm);
  const listed = Array.from(rows, ([, endpoint, who]) => `${endpoint} ${who}`);
  expect(listed.sort()).toEqual([...served, "GET /openapi.json all"].sort());
});

test.skipIf(!hasCurl)("the commands of the page work, each of them", async () => {
  const { api } = new GatewayStage();
  const server = createAdaptorServer({ overrideGlobalObjects: false, fetch: (request) => api.fetch(request) });
  const { authority } = await listen(server, "127.0.0.1", 0);
  const env = { ...process.env, URL: `http://${authority}`, TOKEN };
  const blocks = Array.from(page.matchAll(/```sh\n(.*?)```/gs), ([, block]) => block as string);
  const outputs: unknown[] = [];
  for (const command of blocks.flatMap((block) => block.trim().split(/\n(?=curl)/))) {
    const { stdout } = await run("sh", ["-c", command], { env });
    outputs.push(JSON.parse(stdout));
  }
  server.close();
  const worker = { worker_id: "gpu1", endpoint: "http://10.0.0.2:8000", weight: 2 };
  expect(outputs).toMatchObject([
    { ...worker, lifecycle: "schedulable" },
    { ...worker, lifecycle: "draining" },
    { ...worker, lifecycle: "unschedulable" },
    { model: "fake-model", worker: "a" },
  ]);
});
