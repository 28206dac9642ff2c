import { execFileSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { merge } from "../../src/cli/config/config.js";
import { nearest } from "../../src/cli/config/nearest.js";
import { fromFile } from "../../src/cli/config/sources.js";
import { findModel } from "../../src/cli/serve/find-model.js";
import { type Greeting, greet, quote } from "../../src/cli/serve/greeting.js";
import { routerOptions } from "../../src/cli/serve/router-options.js";
import { listenToSignals } from "../../src/cli/serve/stopping.js";
import { createRouter } from "../../src/gateway/router.js";

const configOf = (values: Record<string, unknown> = {}) => merge([fromFile(values, "file")]).config;

describe("listenToSignals", () => {
  function listen() {
    let signal = (): void => undefined;
    let isListening = true;
    const onSignal = (listener: () => void) => {
      signal = listener;
      return () => {
        isListening = false;
      };
    };
    const stopping = listenToSignals({ onSignal });
    return { stopping, signal: () => signal(), isListening: () => isListening };
  }
  const state = ({ gently, atOnce }: { gently: AbortSignal; atOnce: AbortSignal }) => [gently.aborted, atOnce.aborted];

  test("asks gently first, at once then, and no more after that", async () => {
    const { stopping, signal, isListening } = listen();
    const asked = stopping.asked();
    expect(state(stopping)).toEqual([false, false]);
    signal();
    await asked;
    await stopping.asked();
    expect(state(stopping)).toEqual([true, false]);
    signal();
    expect(state(stopping)).toEqual([true, true]);
    signal();
    expect(state(stopping)).toEqual([true, true]);
    stopping.end();
    expect(isListening()).toBe(false);
  });
});

describe("findModel", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Starts what answers with a text; or never. */
  async function worker(text: string | undefined, status = 200): Promise<string> {
    const server = createServer((_, response) => {
      if (text !== undefined) response.writeHead(status).end(text);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const find = (urls: string[], signal = new AbortController().signal) =>
    findModel(
      urls.map((url) => ({ id: url, url })),
      signal,
    );
  const list = (...ids: unknown[]) => JSON.stringify({ data: ids.map((id) => ({ id })) });

  test("takes one that is named, and asks nobody", async () => {
    const workers = [
      { id: "a", url: "http://127.0.0.1:1" },
      { id: "b", url: "http://127.0.0.1:1", models: ["m"] },
    ];
    expect(await findModel(workers, AbortSignal.abort())).toBe("m");
  });

  test("takes that of the first worker that lists any", async () => {
    expect(await find([await worker(undefined), await worker("{"), await worker(list("m", "n"))])).toBe("m");
  });

  test("finds none where nobody says so", async () => {
    const odd = [list(), list(5), "[]", "null", `{"data":5}`];
    expect(await find(await Promise.all(odd.map((text) => worker(text))))).toBeUndefined();
    expect(await find([await worker(list("m"), 401), "http://127.0.0.1:1"])).toBeUndefined();
    expect(await find([])).toBeUndefined();
  });

  test("gives up when it is told to", async () => {
    const controller = new AbortController();
    const finding = find([await worker(undefined)], controller.signal);
    controller.abort();
    expect(await finding).toBeUndefined();
  });
});

describe("a greeting", () => {
  const greeting: Greeting = {
    config: configOf(),
    url: "http://127.0.0.1:1",
    workers: [{ id: "a", url: "http://10.0.0.1" }],
    isEmbedded: false,
    model: "m",
  };

  test("names real workers without calling them fake, and none where there are none", () => {
    expect(greet(greeting)).toContain("Workers:\n  a  http://10.0.0.1\n");
    expect(greet(greeting)).not.toContain("FAKE");
    expect(greet({ ...greeting, workers: [] })).toContain("No workers yet: POST /workers adds them.");
  });

  test("has a body that a shell gives on as it is, whatever the model is called", () => {
    const text = greet({ ...greeting, model: `it's "$HOME" \\ ü` });
    const line = text.split("\n").find((one) => one.startsWith("  curl ")) as string;
    const printed = execFileSync("/bin/sh", ["-c", line.trim().replace(/^curl.* -d /, "printf %s ")], {
      encoding: "utf8",
    });
    expect(JSON.parse(printed).model).toBe(`it's "$HOME" \\ ü`);
    expect(execFileSync("/bin/sh", ["-c", `printf %s ${quote("'''")}`], { encoding: "utf8" })).toBe("'''");
  });

  test("has a place for the model where nobody knows one", () => {
    expect(greet({ ...greeting, model: undefined })).toContain('"model":"the-name-of-your-model"');
  });

  test("shows no secret", () => {
    const config = configOf({ apiKeys: ["S3CRET"], controlToken: "S3CRET" });
    expect(greet({ ...greeting, config })).not.toContain("S3CRET");
    expect(greet({ ...greeting, config })).toContain("Control: with the token");
  });
});

describe("the options of a router", () => {
  test("are those of the configuration", () => {
    const options = routerOptions(
      configOf({ maxInFlight: 5, retryAttempts: 2, breakerFailures: 7, healthPath: "/ping" }),
      [],
    );
    expect(options).toMatchObject({
      ...{ maxInFlight: 5, retry: { attempts: 2 }, breaker: { failures: 7, openMs: 60_000 }, maxQueued: 100 },
      health: { path: "/ping", intervalMs: 10_000, timeoutMs: 5_000 },
    });
    expect(() => createRouter(options)).not.toThrow();
  });

  test("have off what is 0", () => {
    const options = routerOptions(configOf({ breakerFailures: 0, healthIntervalMs: 0 }), []);
    expect(options).toMatchObject({ breaker: false, health: undefined });
    expect(() => createRouter(options)).not.toThrow();
  });
});

test.each([
  ["prot", "port"],
  ["PORT", "port"],
  ["max_in-flight", "maxInFlight"],
  ["x".repeat(1_000_000), "maxInFlight"],
])("nearest %#", (name, wanted) => {
  expect(nearest(name, ["port", "maxInFlight"])).toBe(wanted);
});
