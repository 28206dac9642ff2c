import { describe, expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import { CHAT_URL, chat, type HandCall, handStage, isIdle } from "./stage.js";

const answer = (call: HandCall) =>
  call.respond(new Response(JSON.stringify({ choices: [] }), { headers: { "content-type": "application/json" } }));

/** Asks for chats one after the other, and says who has had them. */
async function workersOf(stage: ReturnType<typeof handStage>, requests: number): Promise<Set<string>> {
  const workers = new Set<string>();
  for (let at = 0; at < requests; at++) {
    const begun = stage.engine.calls.length;
    const response = stage.router.fetch(CHAT_URL, chat(`${begun} ${"long ".repeat(200)}`));
    const call = await stage.engine.call(begun);
    workers.add(new URL(call.url).hostname);
    answer(call);
    expect((await response).status).toBe(200);
    await (await response).text();
  }
  return workers;
}

describe("a router whose books others use", () => {
  test("sends nothing to a worker that it was not given, and leaves no booking there", async () => {
    for (const policy of ["kv", "round-robin"] as const) {
      const stage = handStage({ policy });
      const { router } = stage;
      router.selection.workers.add({ workerId: "stranger", blockSize: 64 });
      expect(await workersOf(stage, 6)).toEqual(new Set(["a"]));
      expect(isIdle(router)).toBe(true);
      expect(router.selection.workers.get("stranger")).toBeDefined();
      router.addWorker({ id: "b", url: "http://b" });
      expect(await workersOf(stage, 6)).toContain("b");
      expect(isIdle(router)).toBe(true);
    }
  });

  test("sends nothing to a worker that others took out, and can be told that it is gone", async () => {
    const stage = handStage({ workers: ["a", "b"].map((id) => ({ id, url: `http://${id}` })) });
    const { router } = stage;
    router.selection.workers.remove("a");
    router.selection.workers.add({ workerId: "stranger", blockSize: 64 });
    expect(await workersOf(stage, 4)).toEqual(new Set(["b"]));
    await router.drain("a");
    expect(router.stats().workers.find(({ id }) => id === "a")?.isDraining).toBe(true);
    router.removeWorker("a");
    expect(router.stats().workers.map(({ id }) => id)).toEqual(["b"]);
    expect(isIdle(router)).toBe(true);
  });

  test("explains that a request goes to a worker that it was given", async () => {
    const { router } = handStage({ policy: "round-robin" });
    router.selection.workers.add({ workerId: "stranger", blockSize: 64 });
    const request = { method: "POST", path: "/v1/files", query: "", headers: HeaderList.of() };
    for (let at = 0; at < 3; at++) {
      const { worker, candidates } = await router.explain(request);
      expect([worker, candidates.map((one) => one.worker)]).toEqual(["a", ["a"]]);
    }
  });

  test("answers 503 where others took out all that it has", async () => {
    const { router } = handStage();
    router.selection.workers.remove("a");
    expect((await router.fetch(CHAT_URL, chat("x"))).status).toBe(503);
    router.selection.workers.add({ workerId: "stranger", blockSize: 64 });
    expect((await router.fetch(CHAT_URL, chat("x"))).status).toBe(503);
    expect(isIdle(router)).toBe(true);
  });
});
