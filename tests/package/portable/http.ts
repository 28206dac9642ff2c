import { same } from "../../support/agree.js";
import { type Case, type Modules, Skip } from "./parts.js";

const TOKEN = "open-sesame";
const U64_MAX = "18446744073709551615";
/** The bits of 2^63, 2^64 - 1 and 2^53 + 1 as signed integers: JSON that no double can carry. */
const HASHES = "[-9223372036854775808,-1,9007199254740993]";

/** The API over a service with one worker, as one sends requests to it. */
async function stage({ kvroute, http }: Modules, controlToken: string | null = TOKEN) {
  if (http === undefined) throw new Skip("the host has no kvroute/http");
  const service = new kvroute.SelectionService();
  service.workers.add({ workerId: 2n ** 64n - 1n, endpoint: "http://a:8000", blockSize: 4 });
  const api = http.createSelectionApi({ service, controlToken: controlToken ?? undefined });
  const send = async (method: string, path: string, body: string | null = null) => {
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const response = await api.fetch(new Request(`http://api.test${path}`, { method, headers, body }));
    return { status: response.status, text: await response.text() };
  };
  return { service, send };
}

export const httpCases: readonly Case[] = [
  {
    name: "the selection API follows a request from select to delete, and keeps every bit",
    async run(modules) {
      const { service, send } = await stage(modules);
      const prompt = `"sequence_hashes":${HASHES},"isl_tokens":12`;
      const selected = await send("POST", "/select", `{"selection_id":"s",${prompt}}`);
      same("select", 200, selected.status);
      same("worker", true, selected.text.includes(`"worker_id":${U64_MAX}`));
      const load = () => {
        const { activePrefillTokens, activeBlocks, activeRequests } = service.loads()[0]?.loads[0] ?? {};
        return [activePrefillTokens, activeBlocks, activeRequests];
      };
      same("reserve", 201, (await send("POST", "/reservations", '{"selection_id":"s"}')).status);
      same("load", [12, 3, 1], load());
      same("prefill", 200, (await send("POST", "/reservations/s/prefill_complete")).status);
      same("output", 200, (await send("POST", "/reservations/s/output_block")).status);
      same("load", [0, 4, 1], load());
      same("delete", 200, (await send("DELETE", "/reservations/s")).status);
      same("load", [0, 0, 0], load());
      const both = await send("POST", "/select_and_reserve", `{"selection_id":"t",${prompt}}`);
      same("hashes", true, both.text.includes(`"sequence_hashes":${HASHES}`));
    },
  },
  {
    name: "the selection API says where a field is wrong",
    async run(modules) {
      const { send } = await stage(modules);
      const { status, text } = await send(
        "POST",
        "/select",
        '{"sequence_hashes":[1,9223372036854775808],"isl_tokens":8}',
      );
      same("status", 400, status);
      same("path", true, text.includes("sequence_hashes[1]"));
      same("unknown", 404, (await send("DELETE", "/reservations/none")).status);
    },
  },
  {
    name: "the selection API changes workers with a control token only",
    async run(modules) {
      const worker = `{"worker_id":1,"block_size":4}`;
      const open = await stage(modules);
      same("with a token", 201, (await open.send("POST", "/workers", worker)).status);
      const closed = await stage(modules, null);
      same("without", [404, 1], [(await closed.send("POST", "/workers", worker)).status, closed.service.workers.size]);
    },
  },
  {
    name: "the selection API describes itself",
    async run(modules) {
      const { send } = await stage(modules);
      const { openapi, paths } = JSON.parse((await send("GET", "/openapi.json")).text);
      same("version", "3.1", openapi.slice(0, 3));
      same("paths", true, "/select_and_reserve" in paths && "/loads" in paths);
    },
  },
  {
    name: "the gateway API answers as an engine does, counts it, and shows its workers to the token alone",
    async run({ kvroute, testing, http }) {
      if (http === undefined) throw new Skip("the host has no kvroute/http");
      const engine = testing.createFakeEngine({ speedupRatio: Number.POSITIVE_INFINITY });
      const router = kvroute.createRouter({ workers: [{ id: "a", url: "http://a" }], fetch: engine.fetch });
      const api = http.createGatewayApi({ router, controlToken: TOKEN });
      const send = async (path: string, init: RequestInit = {}) => {
        const response = await api.fetch(new Request(`http://api.test${path}`, init));
        return { status: response.status, text: await response.text() };
      };
      const json = { "content-type": "application/json" };
      const body = JSON.stringify({ model: "fake-model", messages: [{ role: "user", content: "Hi." }], max_tokens: 4 });
      const chat = await send("/v1/chat/completions", { method: "POST", headers: json, body });
      same("chat", [200, 4], [chat.status, JSON.parse(chat.text).usage.completion_tokens]);
      const { text } = await send("/metrics");
      const counted = 'kvroute_requests_total{path="/v1/chat/completions",status="200"} 1';
      same("metrics", true, text.split("\n").includes(counted));
      same("workers, without a token", 401, (await send("/workers")).status);
      const workers = await send("/workers", { headers: { authorization: `Bearer ${TOKEN}` } });
      same("workers", [200, true], [workers.status, workers.text.includes('"http://a"')]);
      await router.close();
      same("ready", 503, (await send("/ready")).status);
      engine.dispose();
    },
  },
];
