import { describe, expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { RequestRecord } from "../../src/gateway/request-log.js";
import type { RouterOptions } from "../../src/gateway/router.js";
import { CHAT_URL, chat, handStage, isIdle } from "./stage.js";

const MAX_BYTES = 100;
const LONG = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(MAX_BYTES) }] });

function stage(options: Partial<RouterOptions> = {}) {
  const records: RequestRecord[] = [];
  return { records, ...handStage({ onRequest: (record) => records.push(record), ...options }) };
}

/** A body that comes chunk by chunk and does not say how long it is. */
function streamed(...texts: readonly (string | Error)[]): ReadableStream<Uint8Array> {
  const left = [...texts];
  return new ReadableStream({
    pull(controller) {
      const next = left.shift();
      if (next === undefined) controller.close();
      else if (next instanceof Error) controller.error(next);
      else controller.enqueue(new TextEncoder().encode(next));
    },
  });
}

const post = (body: BodyInit, more: RequestInit = {}) =>
  new Request(CHAT_URL, { method: "POST", body, duplex: "half", ...more } as RequestInit);

describe("a request that was accepted before the router is closed", () => {
  test("is served, though it is still being prepared", async () => {
    const { engine, router, records } = stage();
    const request = (headers: HeaderList) => ({
      ...{ method: "POST", path: "/v1/chat/completions", query: "", headers },
      bytes: new TextEncoder().encode(String(chat("x").body)),
    });
    // Its tenant is a digest, which another thread computes.
    const accepted = router.answer(request(HeaderList.of([["authorization", "Bearer new"]])));
    const closing = router.close();
    const late = await router.answer(request(HeaderList.of()));
    expect(late.status).toBe(503);
    (await engine.call(0)).respond(Response.json({ choices: [] }));
    const { status, body } = await accepted;
    expect(status).toBe(200);
    for (let chunk = await body?.read(); chunk !== undefined; chunk = await body?.read());
    await closing;
    expect(records.map(({ status }) => status)).toEqual([503, 200]);
    expect(isIdle(router)).toBe(true);
  });

  test("is told where it is cut off while it is being prepared", async () => {
    const { engine, router, records } = stage();
    const headers = HeaderList.of([["authorization", "Bearer newer"]]);
    const accepted = router.answer({ method: "POST", path: "/v1/files", query: "", headers });
    await router.close({ signal: AbortSignal.abort() });
    expect((await accepted).status).toBe(503);
    expect(engine.calls).toHaveLength(0);
    expect(records).toMatchObject([{ status: 503, outcome: "refused", error: "KVROUTE_GATEWAY_CLOSED" }]);
  });
});

describe("a request whose body cannot be read", () => {
  test.each<[string, (router: ReturnType<typeof stage>["router"]) => Promise<Response>]>([
    ["handler, by its length", (router) => router.handler(post(LONG, { headers: { "content-length": "999" } }))],
    ["handler, by what comes", (router) => router.handler(post(streamed(LONG.slice(0, 90), LONG.slice(90))))],
    ["fetch, of a text", (router) => router.fetch(CHAT_URL, { method: "POST", body: LONG })],
    ["fetch, of a stream", (router) => router.fetch(post(streamed(LONG)))],
  ])("since it is too long is in the records and the metrics: %s", async (_, send) => {
    const { router, records } = stage({ maxBodyBytes: MAX_BYTES });
    expect((await send(router)).status).toBe(413);
    expect(records).toMatchObject([
      {
        ...{ method: "POST", path: "/v1/chat/completions", model: "", status: 413, outcome: "refused" },
        ...{ error: "KVROUTE_GATEWAY_BODY_TOO_LARGE", attempts: 0, worker: undefined },
      },
    ]);
    expect(router.stats().requests).toEqual([{ path: "/v1/chat/completions", status: "413", count: 1 }]);
    expect(router.stats().timings.request.count).toBe(1);
    await router.close(); // it is not waited for
  });

  test("since its client goes is there as well, and one that is no request is not", async () => {
    const { router, records } = stage();
    const controller = new AbortController();
    const gone = new Error("gone");
    const body = new ReadableStream({ pull: () => controller.abort(gone) });
    const response = await router.handler(post(body, { signal: controller.signal }));
    expect(response.status).toBe(499);
    expect(records).toMatchObject([{ method: "POST", status: 499, outcome: "aborted", error: undefined }]);
    await expect(router.fetch("http://[", {})).rejects.toThrow(TypeError);
    await expect(router.fetch(CHAT_URL, { headers: { "x y": "" } })).rejects.toThrow(TypeError);
    expect(records).toHaveLength(1);
  });
});
