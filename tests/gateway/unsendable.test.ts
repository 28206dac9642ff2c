import { describe, expect, test } from "vitest";
import { HeaderList } from "../../src/gateway/header-list.js";
import type { RequestRecord } from "../../src/gateway/request-log.js";
import { createRouter, type GatewayRequest } from "../../src/gateway/router.js";
import { undiciUpstream } from "../../src/node/undici-upstream.js";
import { VirtualClock } from "../../src/sim/clock.js";
import { HandEngine, isIdle, outcomesOf } from "./stage.js";

const UPSTREAMS = {
  fetch: () => ({ parts: { fetch: new HandEngine().fetch }, close: async () => {} }),
  undici: () => {
    const upstream = undiciUpstream();
    return { parts: { upstream }, close: () => upstream.close() };
  },
};

const bytes = new TextEncoder().encode("{}");
const UNSENDABLE: readonly Partial<GatewayRequest>[] = [
  { method: "TRACE" },
  { method: "CONNECT" },
  { method: "GET", bytes },
  { method: "HEAD", bytes },
  { method: "DELETE", headers: HeaderList.of([["x-a", "\0"]]) },
];

test("an upstream that was closed is no worker's fault", async () => {
  const upstream = undiciUpstream();
  const workers = [{ id: "a", url: "http://127.0.0.1:1" }];
  const router = createRouter({ workers, upstream, clock: new VirtualClock(), breaker: { failures: 1 } });
  await upstream.close();
  const request = { method: "POST", path: "/v1/files", query: "", headers: HeaderList.of() };
  for (let count = 0; count < 2; count++) {
    const { body } = await router.answer(request);
    expect(new TextDecoder().decode(await body?.read())).toContain("KVROUTE_DISPOSED");
  }
  expect(router.stats().workers[0]?.breaker).toEqual({ state: "closed", openings: 0 });
  expect(outcomesOf(router)).toEqual({ failed: 2 });
  expect(isIdle(router)).toBe(true);
  await router.close();
});

describe.each(Object.entries(UPSTREAMS))("by %s, a request that cannot be sent", (_, open) => {
  test("is the caller's fault: it is told so, and no breaker minds", async () => {
    const { parts, close } = open();
    const records: RequestRecord[] = [];
    const router = createRouter({
      workers: [{ id: "a", url: "http://127.0.0.1:1" }],
      clock: new VirtualClock(),
      breaker: { failures: 1 },
      onRequest: (record) => records.push(record),
      ...parts,
    });
    for (const more of UNSENDABLE) {
      const request = { method: "POST", path: "/v1/files", query: "", headers: HeaderList.of(), ...more };
      const { status, body } = await router.answer(request);
      expect(status).toBe(400);
      const text = new TextDecoder().decode(await body?.read());
      expect(JSON.parse(text)).toMatchObject({
        error: { code: "KVROUTE_GATEWAY_REQUEST", type: "invalid_request_error" },
      });
      expect(records.at(-1)).toMatchObject({ status: 400, outcome: "rejected", error: "KVROUTE_GATEWAY_REQUEST" });
    }
    expect(router.stats().workers[0]?.breaker).toEqual({ state: "closed", openings: 0 });
    expect(router.stats().requests).toEqual([{ path: "other", status: "400", count: UNSENDABLE.length }]);
    expect(Object.values(router.stats().retries)).not.toContain(1);
    expect(outcomesOf(router)).toEqual({ rejected: UNSENDABLE.length });
    expect(isIdle(router)).toBe(true);
    await router.close();
    await close();
  });
});
