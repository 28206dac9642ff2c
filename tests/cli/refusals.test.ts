import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { merge } from "../../src/cli/config/config.js";
import { fromFlags } from "../../src/cli/config/sources.js";
import { createLog } from "../../src/cli/serve/log.js";
import { RouterServer } from "../../src/cli/serve/server.js";

test("what the server refuses itself is in the metrics and, once, in the log, as what the router refuses", async () => {
  let text = "";
  const stream = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const flags = { port: "0", apiKeys: ["k"], maxBodyBytes: "10", healthIntervalMs: "0" };
  const { config } = merge([fromFlags(flags)]);
  const log = createLog(stream, "info");
  const server = await RouterServer.start(config, [{ id: "gpu1", url: "http://127.0.0.1:1" }], log.logger);
  const ask = async (path: string, init: RequestInit) =>
    (await fetch(`${server.url}${path}`, { method: "POST", ...init })).status;
  const headers = { "x-api-key": "k" };
  expect(await ask("/v1/completions", { body: "{}" })).toBe(401);
  expect(await ask("/v1/completions", { headers, body: "x".repeat(11) })).toBe(413);
  expect(await ask("/v1/completions", { headers, body: "no json" })).toBe(400);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  for (const status of [400, 401, 413]) {
    expect(metrics).toContain(`kvroute_requests_total{path="/v1/completions",status="${status}"} 1\n`);
  }
  await server.stop(new AbortController().signal);
  await log.end();
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const shared = { level: "info", msg: "request", method: "POST", path: "/v1/completions", outcome: "refused" };
  expect(lines.filter(({ msg }) => msg === "request")).toMatchObject([
    { ...shared, status: 401, error: "KVROUTE_GATEWAY_UNAUTHORIZED" },
    { ...shared, status: 413, error: "KVROUTE_GATEWAY_BODY_TOO_LARGE" },
    { ...shared, status: 400, error: "KVROUTE_BODY_NOT_JSON" },
  ]);
});
