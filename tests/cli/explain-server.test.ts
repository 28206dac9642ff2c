import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createRouter, type Router } from "../../src/gateway/router.js";
import { createGatewayApi } from "../../src/http/gateway-api.js";
import { type GatewayServer, serveGateway } from "../../src/node/serve-gateway.js";
import { kvroute } from "./stage.js";

const TOKEN = "t0k3n";
const BODY = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello. ".repeat(100) }] });
const opened: { close(): unknown }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

const ask = (url: string, ...argv: string[]) =>
  kvroute(["explain", "-", "--server", url, "--control-token", TOKEN, ...argv], { stdin: BODY });

/** A kvroute that runs. */
async function gateway(): Promise<{ server: GatewayServer; router: Router }> {
  const router = createRouter({ workers: ["gpu1", "gpu2"].map((id) => ({ id, url: `http://${id}` })) });
  const api = createGatewayApi({ router, controlToken: TOKEN });
  const server = await serveGateway({ gateway: router, fallback: (request) => api.fetch(request) });
  opened.push(server);
  return { server, router };
}

/** A server that answers as it likes. */
async function other(answer: unknown, status = 200): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    request.resume();
    response
      .writeHead(status, { location: "/elsewhere" })
      .end(typeof answer === "string" ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const EXPLANATION = {
  ...{ model: "m", promptBytes: 700, promptTokens: 175, policy: "kv", worker: "gpu1", decision: "initialize" },
  ...{ blocks: 2, hotBlocks: 0, session: { id: "s", source: "user" }, excluded: [] },
  candidates: [
    { worker: "gpu1", isChosen: true, cachedBlocks: 0, cachedTokens: 0, inFlight: 0, terms: { cost: 1, wait: 2 } },
  ],
};

describe("kvroute explain --server", () => {
  test("says what the server says, by its URL as operators and as clients have it", async () => {
    const { server } = await gateway();
    for (const url of [server.url, `${server.url}/`, `${server.url}/v1`, `${server.url}/v1/`]) {
      const { code, stdout, stderr } = await ask(url, "--json");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const { worker, candidates, promptTokens } = JSON.parse(stdout);
      expect(candidates.map((one: { worker: string }) => one.worker).sort()).toEqual(["gpu1", "gpu2"]);
      expect([["gpu1", "gpu2"].includes(worker), promptTokens > 100]).toEqual([true, true]);
    }
    expect((await ask(server.url)).stdout).toMatch(/^Policy kv sends it to gpu[12]\.$/m);
  });

  test("says what is wrong with the request, in the server's words", async () => {
    const { server } = await gateway();
    const { code, stderr } = await kvroute(["explain", "-", "--server", server.url, "--control-token", TOKEN], {
      stdin: "[]",
    });
    expect([code, stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining("Expected the body to be a JSON object"),
    ]);
    expect(code).not.toBe(0);
  });

  test.each<[string, unknown, number]>([
    ["no JSON", "<html>", 200],
    ["a list", [], 200],
    ["no explanation", {}, 200],
    ["half an explanation", { candidates: [] }, 200],
    ["an explanation of other kinds", { ...EXPLANATION, promptBytes: "many" }, 200],
    ["terms that are none", { ...EXPLANATION, candidates: [{ ...EXPLANATION.candidates[0], terms: null }] }, 200],
    ["an error of something else", { error: { message: "no" } }, 404],
    ["a redirect", "", 302],
  ])("says that no kvroute answers where the answer is %s", async (_, answer, status) => {
    const { url } = await other(answer, status);
    const { code, stdout, stderr } = await ask(url);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/Expected an answer of the kvroute at http:\/\/127\.0\.0\.1:\d+, got /);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("lets no server speak to the terminal, in an explanation or an error", async () => {
    const evil = "\u001b]0;x\u0007\n\u009b31m";
    const worker = `gpu${evil}`;
    const { url } = await other({
      ...EXPLANATION,
      ...{ worker, policy: evil, session: { id: evil, source: evil } },
      candidates: [{ ...EXPLANATION.candidates[0], worker, terms: { cost: 1, [evil]: 2 } }],
      excluded: [{ worker: evil, reason: evil }],
    });
    const control = (text: string) => text.replaceAll("\n", "").match(/\p{C}/gu);
    const { code, stdout } = await ask(url);
    expect([code, control(stdout)]).toEqual([0, null]);
    const lines = stdout.trimEnd().split("\n").length;
    const { url: plain } = await other({ ...EXPLANATION, excluded: [{ worker: "b", reason: "no" }] });
    expect((await ask(plain)).stdout.trimEnd().split("\n")).toHaveLength(lines);
    const failing = await other({ error: `no ${evil}`, code: "KVROUTE_NO_WORKER" }, 503);
    const { stderr } = await ask(failing.url);
    expect(stderr).toContain("no ?]0;x");
    expect(control(stderr)).toBeNull();
  });

  test("sends the token to that server alone, and shows it nowhere", async () => {
    const { url, requests } = await other("", 307);
    const { stdout, stderr } = await ask(url);
    expect(requests.map((request) => [request.url, request.headers.authorization])).toEqual([
      ["/explain", `Bearer ${TOKEN}`],
    ]);
    expect(stdout + stderr).not.toContain(TOKEN);
  });
});
