import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { serveSelection } from "../../src/node/serve-selection.js";
import { SelectionService } from "../../src/selection/service.js";
import { ApiStage, TOKEN } from "./api-stage.js";

const page = readFileSync(new URL("../../docs/selection-api.md", import.meta.url), "utf8");
const run = promisify(execFile);
const hasCurl = await run("curl", ["--version"]).then(
  () => true,
  () => false,
);

test("the page lists every endpoint, and none that is not there", async () => {
  const { paths } = (await new ApiStage().send("GET", "/openapi.json")).body;
  const served = Object.entries<object>(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const listed = Array.from(page.matchAll(/^\| `([A-Z]+ \/[^`]+)` \|/gm), ([, endpoint]) => endpoint);
  expect(listed.sort()).toEqual([...served, "GET /openapi.json"].sort());
});

test.skipIf(!hasCurl)("the commands of the page work, each of them", async () => {
  const server = await serveSelection({ service: new SelectionService(), controlToken: TOKEN });
  const commands = page.split("```sh\n")[1]?.split("```")[0] as string;
  const env = { ...process.env, URL: server.url, TOKEN };
  const outputs: unknown[] = [];
  for (const command of commands.trim().split(/\n(?=curl)/)) {
    const { stdout } = await run("sh", ["-c", command], { env });
    outputs.push(JSON.parse(stdout));
  }
  await server.close();
  const worker = { worker_id: 1, endpoint: "http://10.0.0.1:8000" };
  expect(outputs).toMatchObject([
    { ...worker, lifecycle: "schedulable" },
    { ...worker, selection_id: "mine", effective_prefill_tokens: 8 },
    { ...worker, selection_id: "mine", existing: false },
    { status: "ok" },
    { status: "ok" },
    [{ loads: [{ worker_id: 1, potential_prefill_tokens: 0, potential_decode_blocks: 2, active_requests: 1 }] }],
    { status: "ok" },
    { ...worker, lifecycle: "unschedulable" },
  ]);
});
