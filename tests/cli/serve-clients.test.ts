import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clientsContract, LONG, model, openAiOf, type Served, user } from "../contract/clients.js";
import { type ServeProcess, startServe } from "./serve-process.js";
import { kvroute } from "./stage.js";

const TOKEN = "t0ken";

let server: ServeProcess;
let served: Served;
let client: OpenAI;

beforeAll(async () => {
  server = await startServe([], { KVROUTE_CONTROL_TOKEN: TOKEN });
  served = {
    baseURL: `${server.url}/v1`,
    inFlight,
    aborted: () => server.lines.filter(({ outcome }) => outcome === "aborted").length,
    enginesIdle: async () => {
      while ((await inFlight()) > 0); // its engines are its own, and a call ends with its connection
    },
  };
  client = openAiOf(served);
});
afterAll(async () => {
  server.kill("SIGTERM");
  expect(await server.exit).toBe(0);
});

async function inFlight(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^kvroute_requests_in_flight (\d+)$/m.exec(metrics)?.[1]);
}

describe("the openai client, before a server", () => {
  test("chats, and the next turn finds the last one in the cache of its engine", async () => {
    const messages = [user(LONG)];
    const { data: first, response } = await client.chat.completions.create({ model, messages }).withResponse();
    const answer = { role: "assistant" as const, content: first.choices[0]?.message.content ?? "" };
    const turn = { model, messages: [...messages, answer, user("And then?")] };
    const { data: next, response: again } = await client.chat.completions.create(turn).withResponse();
    expect(again.headers.get("x-kvroute-worker")).toBe(response.headers.get("x-kvroute-worker"));
    expect(again.headers.get("x-kvroute-decision")).toBe("retain");
    expect(Number(again.headers.get("x-kvroute-cached-tokens"))).toBeGreaterThan(200);
    expect(next.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThan((first.usage?.prompt_tokens ?? 0) * 0.8);
  });
});

clientsContract(() => served);

describe("kvroute explain --server", () => {
  const request = { model, messages: [user(LONG)] };
  const explain = (...argv: string[]) =>
    kvroute(["explain", "-", "--server", server.url, ...argv], { stdin: JSON.stringify(request) });

  test("says what the caches of a server hold, and where it would send a request", async () => {
    const { response } = await client.chat.completions.create(request).withResponse();
    const { code, stdout, stderr } = await explain(
      "--json",
      "--control-token",
      TOKEN,
      "--header",
      "authorization=Bearer none",
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { worker, candidates, decision } = JSON.parse(stdout);
    expect({ worker, decision }).toEqual({ worker: response.headers.get("x-kvroute-worker"), decision: "retain" });
    expect(candidates.find((one: { isChosen: boolean }) => one.isChosen).cachedBlocks).toBeGreaterThan(4);
    expect((await explain("--control-token", TOKEN)).stdout).toContain(`Policy kv sends it to ${worker}.`);
  });

  test.each([
    [[], 2, "Expected --control-token to be that of the server, got none."],
    [["--control-token", "wrong"], 2, "got another."],
    [["--control-token", TOKEN, "--policy", "random"], 2, "Expected --server or --policy, not both"],
    [["--control-token", TOKEN, "--server", "http://user:S3CRET@a"], 2, "without credentials"],
    [["--control-token", TOKEN, "--server", "http://127.0.0.1:1"], 1, "at http://127.0.0.1:1, got none."],
  ])("refuses %j with exit code %i", async (argv, code, message) => {
    const outcome = await explain(...argv);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stderr).not.toMatch(/S3CRET|wrong/);
    expect(outcome.code).toBe(code);
  });

  test("passes on what the server says is wrong", async () => {
    const outcome = await kvroute(["explain", "-", "--server", server.url, "--control-token", TOKEN], { stdin: "{" });
    expect(outcome.stderr).toContain("JSON");
    expect(outcome.code).toBe(1);
  });

  test("takes a key where the server does, and is of its tenant then", async () => {
    const keyed = await startServe(["--api-key", "sk-1"], { KVROUTE_CONTROL_TOKEN: TOKEN });
    const apiKey = openAiOf({ baseURL: `${keyed.url}/v1` }).withOptions({ apiKey: "sk-1" });
    await apiKey.chat.completions.create(request);
    const ask = (...argv: string[]) =>
      kvroute(["explain", "-", "--json", "--server", keyed.url, "--control-token", TOKEN, ...argv], {
        stdin: JSON.stringify(request),
      });
    expect((await ask()).stderr).toContain("Expected an API key of this server");
    const { stdout } = await ask("--header", "authorization=Bearer sk-1");
    expect(JSON.parse(stdout)).toMatchObject({ decision: "retain" });
    keyed.kill("SIGTERM");
    expect(await keyed.exit).toBe(0);
  });

  test("is refused by a server without control, and by what is no kvroute", async () => {
    const plain = await startServe();
    const engine = /^ +embedded-1 +(\S+)$/m.exec(plain.stderr)?.[1] as string;
    const ask = (url: string) =>
      kvroute(["explain", "-", "--server", url, "--control-token", TOKEN], { stdin: JSON.stringify(request) });
    expect((await ask(plain.url)).stderr).toContain("got one of a server without any.");
    expect((await ask(engine)).stderr).toMatch(
      /Expected an answer of the kvroute at .*, got status 404 of something else\./,
    );
    plain.kill("SIGTERM");
    expect(await plain.exit).toBe(0);
  });
});
