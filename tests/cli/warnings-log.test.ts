import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { merge } from "../../src/cli/config/config.js";
import { fromFlags } from "../../src/cli/config/sources.js";
import { createLog } from "../../src/cli/serve/log.js";
import { RouterServer } from "../../src/cli/serve/server.js";
import { until } from "../support/until.js";

test("a breaker that opens, and one that closes, is one line of the log, with its name and worker", async () => {
  let status = 500;
  const engine = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  let text = "";
  const stream = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const flags = { port: "0", breakerFailures: "2", breakerOpenMs: "1", retryAttempts: "1", healthIntervalMs: "0" };
  const { config } = merge([fromFlags(flags)]);
  const log = createLog(stream, "warn");
  const server = await RouterServer.start(config, [{ id: "gpu1", url }], log.logger);
  const ask = async () => (await fetch(`${server.url}/v1/completions`, { method: "POST", body: "{}" })).status;
  expect(await ask()).toBe(500);
  expect(await ask()).toBe(500);
  status = 200;
  await expect.poll(ask).toBe(200);
  await log.end();
  await until(() => text.includes("BREAKER_CLOSED"), "it is logged");
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ name }) => name !== undefined)).toMatchObject([
    { level: "warn", name: "KVROUTE_WARNING_BREAKER_OPENED", worker: "gpu1", msg: expect.stringMatching(/^Expected/) },
    { level: "warn", name: "KVROUTE_WARNING_BREAKER_CLOSED", worker: "gpu1", msg: 'Worker "gpu1" answers again.' },
  ]);
  await server.stop(new AbortController().signal);
  engine.closeAllConnections();
  await new Promise((resolve) => engine.close(resolve));
});
